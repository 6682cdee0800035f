//! Container images: the definition, and the image itself as an OCI archive. Nothing is in them but the static program,
//! its licences, and the folders that programs expect.

use anyhow::Result;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::archive::{Entry, gzip, tar};
use super::payload::{Payload, Program};
use super::places::PLACES;

/// The user that runs the program: nobody in particular.
const USER: &str = "65532:65532";

/// What `docker build` reads, beside the program.
pub(crate) fn definition(payload: &Payload) -> String {
    format!(
        "# linchpin {version} for x86_64 and aarch64; build it in the unpacked tarball of a -musl target.\n\
         FROM scratch\n\
         LABEL org.opencontainers.image.title=linchpin org.opencontainers.image.version={version} \\\n      \
         org.opencontainers.image.licenses=\"MIT OR Apache-2.0\" org.opencontainers.image.source={repository}\n\
         COPY linchpin /usr/bin/linchpin\n\
         COPY LICENSE-APACHE LICENSE-MIT /usr/share/doc/linchpin/\n\
         USER {USER}\n\
         WORKDIR /data\n\
         ENV HOME=/data\n\
         ENTRYPOINT [\"/usr/bin/linchpin\"]\n",
        version = payload.version,
        repository = PLACES.repository
    )
}

/// The files of the image.
pub(crate) fn root(payload: &Payload, program: &Program) -> Result<Vec<Entry>> {
    let mut files = vec![Entry::program("usr/bin/linchpin", program.bytes.clone())];
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        files.push(payload.text(licence)?.at(format!("usr/share/doc/linchpin/{licence}")));
    }
    files.push(Entry::file("data/.keep", Vec::new()));
    files.push(Entry::file("tmp/.keep", Vec::new()));
    Ok(files)
}

/// `linchpin-VERSION-image-CPU.tar`, an OCI archive: `podman load -i`, `skopeo copy oci-archive:…`.
pub(crate) fn archive(payload: &Payload, program: &Program) -> Result<(String, Vec<u8>)> {
    let cpu = program.target.debian_cpu();
    let layer = tar(&root(payload, program)?, payload.epoch)?;
    let difference = digest(&layer);
    let mut blobs = Vec::new();
    let layer = blob(&mut blobs, "application/vnd.oci.image.layer.v1.tar+gzip", gzip(&layer, payload.level)?);
    let created = rfc3339(payload.epoch);
    let config = json!({
        "created": created,
        "architecture": cpu,
        "os": "linux",
        "config": {
            "User": USER,
            "Env": ["PATH=/usr/bin", "HOME=/data"],
            "Entrypoint": ["/usr/bin/linchpin"],
            "WorkingDir": "/data",
            "Labels": {
                "org.opencontainers.image.title": "linchpin",
                "org.opencontainers.image.version": payload.version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
                "org.opencontainers.image.source": PLACES.repository,
                // The registry of MCP servers wants to see who an image belongs to.
                "io.modelcontextprotocol.server.name": format!("{}/linchpin", PLACES.registry),
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
    use super::*;

    #[test]
    fn times_are_written_as_images_want_them() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_795_483_858), "2026-11-24T01:30:58Z");
    }
}
