//! Python wheels: the program as a script, so that `uvx linchpin` and `pip install` put it on the path.

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::archive::{Entry, zip};
use super::payload::{Payload, Program, Target, glibc};
use super::places::PLACES;

/// The platform tag of a program.
fn tag(target: &Target, program: &[u8]) -> String {
    let cpu = target.cpu();
    let arm = cpu == "aarch64";
    match (target.os(), target.is_static()) {
        // Old installers do not know the general form for versions before 2.17.
        ("linux", false) => {
            let version = glibc(program).unwrap_or_else(|| "2.17".into());
            let minor: u32 = version.rsplit('.').next().and_then(|minor| minor.parse().ok()).unwrap_or(17);
            format!("manylinux_2_{}_{cpu}", minor.max(17))
        }
        ("linux", true) => format!("musllinux_1_1_{cpu}"),
        ("darwin", _) if arm => "macosx_11_0_arm64".into(),
        ("darwin", _) => "macosx_10_12_x86_64".into(),
        (_, _) if arm => "win_arm64".into(),
        (_, _) => "win_amd64".into(),
    }
}

/// The wheel of a target as `(file name, bytes)`.
pub(crate) fn wheel(payload: &Payload, program: &Program) -> Result<(String, Vec<u8>)> {
    let tag = format!("py3-none-{}", tag(&program.target, &program.bytes));
    let base = format!("{}-{}", PLACES.pypi.replace('-', "_"), payload.version);
    let info = format!("{base}.dist-info");
    let mut metadata = format!(
        "Metadata-Version: 2.4\nName: {}\nVersion: {}\n\
         Summary: Model Context Protocol servers, and a client for any other, in one program\n\
         License-Expression: MIT OR Apache-2.0\nLicense-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\n\
         Project-URL: Homepage, {}\nProject-URL: Repository, {}\n\
         Keywords: mcp,model-context-protocol\nRequires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n",
        PLACES.pypi, payload.version, PLACES.homepage, PLACES.repository
    );
    metadata.push_str(&payload.page(&format!("uvx {}", PLACES.pypi))?);
    let mut entries = vec![
        Entry::program(format!("{base}.data/scripts/{}", program.target.program()), program.bytes.clone()),
        Entry::file(format!("{info}/METADATA"), metadata),
        Entry::file(
            format!("{info}/WHEEL"),
            format!("Wheel-Version: 1.0\nGenerator: linchpin-xtask\nRoot-Is-Purelib: false\nTag: {tag}\n"),
        ),
    ];
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        entries.push(payload.text(licence)?.at(format!("{info}/licenses/{licence}")));
    }
    let mut record = String::new();
    for entry in &entries {
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(&entry.bytes));
        record.push_str(&format!("{},sha256={digest},{}\n", entry.path, entry.bytes.len()));
    }
    record.push_str(&format!("{info}/RECORD,,\n"));
    entries.push(Entry::file(format!("{info}/RECORD"), record));
    Ok((format!("{base}-{tag}.whl"), zip(&entries, payload.level)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_says_which_glibc_a_program_wants() {
        let target = |triple| Target::new(triple).unwrap();
        assert_eq!(tag(&target("x86_64-unknown-linux-gnu"), b"GLIBC_2.34\0"), "manylinux_2_34_x86_64");
        assert_eq!(tag(&target("x86_64-unknown-linux-gnu"), b"GLIBC_2.2.5\0"), "manylinux_2_17_x86_64");
        assert_eq!(tag(&target("aarch64-unknown-linux-musl"), b""), "musllinux_1_1_aarch64");
        assert_eq!(tag(&target("aarch64-apple-darwin"), b""), "macosx_11_0_arm64");
    }
}
