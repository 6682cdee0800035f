//! Container images: the definition, and the image itself as an OCI archive. Nothing is in them but the static program,
//! its licences, certificates, and the folders that programs expect.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::archive::{Entry, Folder, gzip, tar, tar_with};
use super::payload::{Payload, Program};
use super::places::PLACES;

/// The user that runs the program: nobody in particular.
const USER: u64 = 65532;

/// Where the definition finds what only a system has; `/srv` is empty there.
const BASE: &str = "docker.io/library/alpine:3";

/// Certificates of authorities, where programs look for them: without them nothing is reached over HTTPS.
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Where the program may write.
const FOLDERS: [Folder; 2] =
    [Folder { path: "data", mode: 0o755, owner: USER }, Folder { path: "tmp", mode: 0o1777, owner: 0 }];

/// What `docker build` reads, beside the program. Certificates and folders are another image's: one from scratch cannot
/// make them, and nothing must run in it, so that it is built for other processors too.
pub(crate) fn definition(payload: &Payload) -> String {
    format!(
        "# linchpin {version} for x86_64 and aarch64; build it in the unpacked tarball of a -musl target.\n\
         FROM scratch\n\
         LABEL org.opencontainers.image.title=linchpin org.opencontainers.image.version={version} \\\n      \
         org.opencontainers.image.licenses=\"MIT OR Apache-2.0\" org.opencontainers.image.source={repository}\n\
         COPY --from={BASE} /{CERTIFICATES} /{CERTIFICATES}\n\
         COPY --from={BASE} /tmp /tmp\n\
         COPY --from={BASE} --chown={USER}:{USER} /srv /data\n\
         COPY linchpin /usr/bin/linchpin\n\
         COPY LICENSE-APACHE LICENSE-MIT /usr/share/doc/linchpin/\n\
         USER {USER}:{USER}\n\
         WORKDIR /data\n\
         ENV HOME=/data\n\
         ENTRYPOINT [\"/usr/bin/linchpin\"]\n",
        version = payload.version,
        repository = PLACES.repository
    )
}

/// The files of the image. The certificates are this machine's: only machines with the same ones make the same image.
fn root(payload: &Payload, program: &Program) -> Result<Vec<Entry>> {
    let mut files = vec![Entry::program("usr/bin/linchpin", program.bytes.clone())];
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        files.push(payload.text(licence)?.at(format!("usr/share/doc/linchpin/{licence}")));
    }
    files.push(certificates(&Path::new("/").join(CERTIFICATES))?);
    Ok(files)
}

fn certificates(file: &Path) -> Result<Entry> {
    let advice = || format!("the image needs {}: install the package ca-certificates", file.display());
    Ok(Entry::file(CERTIFICATES, std::fs::read(file).with_context(advice)?))
}

/// `linchpin-VERSION-image-CPU.tar`, an OCI archive: `podman load -i`, `skopeo copy oci-archive:…`.
pub(crate) fn archive(payload: &Payload, program: &Program) -> Result<(String, Vec<u8>)> {
    let cpu = program.target.debian_cpu();
    let layer = tar_with(&FOLDERS, &root(payload, program)?, payload.epoch)?;
    let difference = digest(&layer);
    let mut blobs = Vec::new();
    let layer = blob(&mut blobs, "application/vnd.oci.image.layer.v1.tar+gzip", gzip(&layer, payload.level)?);
    let created = rfc3339(payload.epoch);
    let config = json!({
        "created": created,
        "architecture": cpu,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/usr/bin", "HOME=/data"],
            "Entrypoint": ["/usr/bin/linchpin"],
            "WorkingDir": "/data",
            "Labels": {
                "org.opencontainers.image.title": "linchpin",
                "org.opencontainers.image.version": payload.version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
                "org.opencontainers.image.source": PLACES.repository,
                // The registry of MCP servers wants to see who an image belongs to.
                "io.modelcontextprotocol.server.name": PLACES.entry(),
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [difference] },
        "history": [{ "created": created, "created_by": "cargo xtask dist" }],
    });
    let config = blob(&mut blobs, "application/vnd.oci.image.config.v1+json", serde_json::to_vec(&config)?);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [layer],
    });
    let mut manifest = blob(&mut blobs, "application/vnd.oci.image.manifest.v1+json", serde_json::to_vec(&manifest)?);
    manifest["platform"] = json!({ "architecture": cpu, "os": "linux" });
    manifest["annotations"] =
        json!({ "org.opencontainers.image.ref.name": format!("{}:{}", PLACES.image, payload.version) });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    let mut entries = vec![
        Entry::file("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#),
        Entry::file("index.json", serde_json::to_vec(&index)?),
    ];
    entries.extend(blobs);
    Ok((format!("linchpin-{}-image-{cpu}.tar", payload.version), tar(&entries, payload.epoch)?))
}

fn blob(blobs: &mut Vec<Entry>, kind: &str, bytes: Vec<u8>) -> Value {
    let digest = digest(&bytes);
    let descriptor = json!({ "mediaType": kind, "digest": digest, "size": bytes.len() });
    blobs.push(Entry::file(format!("blobs/{}", digest.replace(':', "/")), bytes));
    descriptor
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", super::hex(&Sha256::digest(bytes)))
}

/// A time in seconds since 1970, as `2026-11-24T02:00:00Z`.
fn rfc3339(epoch: u64) -> String {
    let (days, seconds) = (epoch / 86_400, epoch % 86_400);
    // Days since 0000-03-01, in eras of 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 { (month + 3, year) } else { (month - 9, year + 1) };
    let year = year + era * 400;
    format!("{year:04}-{month:02}-{date:02}T{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The headers of what is in a tar archive.
    fn headers(bytes: &[u8]) -> BTreeMap<String, (u32, u64, u64)> {
        let mut archive = tar::Archive::new(bytes);
        let entries = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            let path = entry.path().unwrap().display().to_string();
            (path, (header.mode().unwrap(), header.uid().unwrap(), header.gid().unwrap()))
        });
        entries.collect()
    }

    #[test]
    fn the_user_of_the_image_can_write_to_its_home_and_to_tmp_only() {
        let found = headers(&tar_with(&FOLDERS, &[Entry::program("usr/bin/linchpin", vec![1])], 0).unwrap());
        assert_eq!(found["data/"], (0o755, USER, USER));
        assert_eq!(found["tmp/"], (0o1777, 0, 0));
        assert_eq!(found["usr/bin/"], (0o755, 0, 0));
        assert_eq!(found["usr/bin/linchpin"], (0o755, 0, 0));
    }

    #[test]
    fn the_certificates_of_the_machine_are_put_where_programs_look_for_them() {
        let home = std::env::temp_dir().join(format!("linchpin-certificates-{}", std::process::id()));
        std::fs::write(&home, "PEM").unwrap();
        let entry = certificates(&home).unwrap();
        std::fs::remove_file(&home).unwrap();
        assert_eq!((entry.path.as_str(), &entry.bytes[..]), ("etc/ssl/certs/ca-certificates.crt", &b"PEM"[..]));
        let missing = format!("{:#}", certificates(&home).err().unwrap());
        assert!(missing.contains("install the package ca-certificates"), "{missing}");
    }

    #[test]
    fn times_are_written_as_images_want_them() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_795_483_858), "2026-11-24T01:30:58Z");
    }
}
