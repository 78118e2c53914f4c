"""The cluster's certificate authority, and the certificates and kubeconfigs that it signs."""

from __future__ import annotations

import datetime
import ipaddress
import json
from base64 import b64encode
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LASTS = datetime.timedelta(days=365)
SIGNS = x509.KeyUsage(
    digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
    key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False)


class Authority:
    """Signs for one cluster. Its key is never written to a file, so it cannot sign anything later."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700, parents=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("mpiboot test cluster", None)
        self._certificate = (
            _unsigned(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(SIGNS, critical=True)
            .sign(self._key, hashes.SHA256()))
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(_pem(self._certificate))

    def issue(self, file: str, user: str, group: str | None = None, names: Iterable[str] = ()) -> tuple[Path, Path]:
        """Certificate and key for a user, or for a server that answers to `names` (host names and addresses)."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
        usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH])
        # Python 3.13 and newer require the identifiers of both keys.
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (_unsigned(_name(user, group), self._name, key.public_key())
                   .add_extension(usages, critical=False).add_extension(issuer, critical=False))
        if list(alternatives):
            builder = builder.add_extension(alternatives, critical=False)
        paths = self.folder / f"{file}.crt", self.folder / f"{file}.key"
        paths[0].write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        write_key(paths[1], key)
        return paths

    def kubeconfig(self, path: Path, server: str, user: str, group: str | None = None) -> Path:
        """Write a kubeconfig (JSON is YAML) for `user`, with all certificates and keys inside."""
        certificate, key = self.issue(user.replace(":", "-"), user, group)
        content = {
            "apiVersion": "v1", "kind": "Config", "current-context": "mpiboot",
            "clusters": [{"name": "mpiboot", "cluster": {
                "server": server, "certificate-authority-data": _data(self.certificate)}}],
            "users": [{"name": user, "user": {
                "client-certificate-data": _data(certificate), "client-key-data": _data(key)}}],
            "contexts": [{"name": "mpiboot", "context": {"cluster": "mpiboot", "user": user}}]}
        path.touch(mode=0o600)
        path.write_text(json.dumps(content, indent=1), encoding="ascii")
        return path


def write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    """Write a private key that only its owner can read."""
    path.touch(mode=0o600)
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL,
                                       serialization.NoEncryption()))


def service_account_key(folder: Path) -> Path:
    """The key that signs the tokens of service accounts."""
    path = folder / "service-accounts.key"
    write_key(path, ec.generate_private_key(ec.SECP256R1()))
    return path


def _unsigned(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(now + LASTS)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False))


def _name(user: str, group: str | None) -> x509.Name:
    organization = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    return x509.Name([*organization, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _data(path: Path) -> str:
    return b64encode(path.read_bytes()).decode()
