//! Which keys and certificates does a cluster need? A CA, one serving certificate for every server on loopback, and the
//! key pair that signs service-account tokens. Made anew for each cluster, valid nowhere else.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use crate::error::{Error, Result, io};

/// The files, and the CA's certificate for those who verify.
pub(crate) struct Pki {
    pub(crate) ca_pem: String,
    pub(crate) ca: PathBuf,
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) accounts_key: PathBuf,
    pub(crate) accounts_public: PathBuf,
}

/// Writes all of them into `dir`.
pub(crate) fn create(dir: &Path) -> Result<Pki> {
    fs::create_dir_all(dir).map_err(io("create", dir))?;
    let made = |e: rcgen::Error| Error::Certificates(e.to_string());
    let ca_key = KeyPair::generate().map_err(made)?;
    let mut ca = CertificateParams::new(Vec::new()).map_err(made)?;
    ca.distinguished_name.push(DnType::CommonName, "rig-ca");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let ca_pem = ca.self_signed(&ca_key).map_err(made)?.pem();

    let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(str::to_owned);
    let mut server = CertificateParams::new(names).map_err(made)?;
    server.distinguished_name.push(DnType::CommonName, "rig-server");
    let server_key = KeyPair::generate().map_err(made)?;
    let server_pem = server
        .signed_by(&server_key, &Issuer::new(ca, ca_key))
        .map_err(made)?
        .pem();
    let accounts = KeyPair::generate().map_err(made)?;

    let write = |name: &str, content: &str| {
        let path = dir.join(name);
        fs::write(&path, content).map_err(io("write", &path)).map(|()| path)
    };
    Ok(Pki {
        ca: write("ca.crt", &ca_pem)?,
        cert: write("server.crt", &server_pem)?,
        key: write("server.key", &server_key.serialize_pem())?,
        accounts_key: write("accounts.key", &accounts.serialize_pem())?,
        accounts_public: write("accounts.pub", &accounts.public_key_pem())?,
        ca_pem,
    })
}
