//! How the program is linked as it is distributed.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    // Only the profile `dist` builds this package for size, and only here is the linker one that comes with the compiler.
    if of("OPT_LEVEL") == "z" && of("TARGET") == "x86_64-unknown-linux-gnu" {
        // Functions and tables that are alike are there once: `bench/README.md`, "Size", says why that is safe.
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all,--ignore-data-address-equality");
    }
}
