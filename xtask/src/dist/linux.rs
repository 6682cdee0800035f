//! The tarball of a target, and the Debian package.

use anyhow::Result;

use super::archive::{Entry, ar, gzip, tar};
use super::payload::{Payload, Program, glibc};
use super::places::PLACES;

/// `linchpin-VERSION-TARGET.tar.gz`: a folder of that name.
pub(crate) fn tarball(payload: &Payload, program: &Program) -> Result<(String, Vec<u8>)> {
    let folder = format!("linchpin-{}-{}", payload.version, program.target.triple);
    let mut entries = vec![Entry::program(format!("{folder}/{}", program.target.program()), program.bytes.clone())];
    entries.extend(payload.texts.iter().map(|text| text.at(format!("{folder}/{}", text.path))));
    entries.extend(payload.completions.iter().map(|file| file.at(format!("{folder}/completions/{}", file.path))));
    entries.extend(payload.man.iter().map(|page| page.at(format!("{folder}/man/{}", page.path))));
    Ok((format!("{folder}.tar.gz"), gzip(&tar(&entries, payload.epoch)?, payload.level)?))
}

/// `linchpin_VERSION_ARCH.deb`.
pub(crate) fn debian(payload: &Payload, program: &Program) -> Result<(String, Vec<u8>)> {
    let cpu = program.target.debian_cpu();
    let mut data = vec![Entry::program("./usr/bin/linchpin", program.bytes.clone())];
    for (completions, at) in payload.completions.iter().zip([
        "./usr/share/bash-completion/completions/linchpin",
        "./usr/share/zsh/vendor-completions/_linchpin",
        "./usr/share/fish/vendor_completions.d/linchpin.fish",
    ]) {
        data.push(completions.at(at));
    }
    data.push(Entry::file("./usr/share/doc/linchpin/copyright", copyright(payload)?));
    let changes = gzip(&payload.text("CHANGELOG.md")?.bytes, 9)?;
    data.push(Entry::file("./usr/share/doc/linchpin/changelog.gz", changes));
    for page in &payload.man {
        data.push(Entry::file(format!("./usr/share/man/man1/{}.gz", page.path), gzip(&page.bytes, 9)?));
    }
    let installed_kib = data.iter().map(|entry| entry.bytes.len().div_ceil(1024)).sum::<usize>();
    let libc = glibc(&program.bytes).map(|version| format!("libc6 (>= {version}), ")).unwrap_or_default();
    let control = format!(
        "Package: linchpin\nVersion: {}\nArchitecture: {cpu}\nMaintainer: {}\nInstalled-Size: {installed_kib}\n\
         Depends: {libc}ca-certificates\nRecommends: git\nSection: utils\nPriority: optional\nHomepage: {}\n\
         Description: Model Context Protocol servers, and a client for any other\n \
         One program that serves ready-made servers of the Model Context Protocol (files, git,\n \
         databases, web pages and APIs) in every revision, and inspects any other server.\n",
        payload.version, PLACES.maintainer, PLACES.homepage
    );
    let control = tar(&[Entry::file("./control", control)], payload.epoch)?;
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gzip(&control, 9)?),
        ("data.tar.gz", gzip(&tar(&data, payload.epoch)?, payload.level)?),
    ];
    Ok((format!("linchpin_{}_{cpu}.deb", payload.version), ar(&members, payload.epoch)))
}

/// The licences, in the form that Debian reads.
fn copyright(payload: &Payload) -> Result<String> {
    let mut text = format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: linchpin\n\
         Source: {}\n\nFiles: *\nCopyright: The Linchpin developers\nLicense: MIT or Apache-2.0\n",
        PLACES.repository
    );
    for (name, file) in [("MIT", "LICENSE-MIT"), ("Apache-2.0", "LICENSE-APACHE")] {
        text.push_str(&format!("\nLicense: {name}\n"));
        for line in String::from_utf8_lossy(&payload.text(file)?.bytes).lines() {
            text.push_str(&if line.trim().is_empty() { " .\n".to_owned() } else { format!(" {line}\n") });
        }
    }
    Ok(text)
}
