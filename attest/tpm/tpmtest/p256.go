package tpmtest

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport"
	"github.com/google/go-tpm/tpm2/transport/linuxudstpm"

	"portcullis/attest/attesttest"
	"portcullis/attest/ek"
)

// certifyP256 has the vendor certify the TPM's P-256 EK and writes the
// certificate to its NV index, as a factory would.
func (t *TPM) certifyP256() error {
	dev, err := linuxudstpm.Open(t.socket())
	if err != nil {
		return err
	}
	defer dev.Close()
	key, err := readP256(dev)
	if err != nil {
		return fmt.Errorf("create the P-256 EK: %w", err)
	}
	der, err := t.issue(key)
	if err != nil {
		return fmt.Errorf("certify the P-256 EK: %w", err)
	}
	return writeNV(dev, ek.P256.CertificateIndex(), der)
}

func readP256(dev transport.TPM) (crypto.PublicKey, error) {
	rsp, err := tpm2.CreatePrimary{
		PrimaryHandle: tpm2.TPMRHEndorsement, InPublic: tpm2.New2B(tpm2.ECCEKTemplate),
	}.Execute(dev)
	if err != nil {
		return nil, err
	}
	if _, err := (tpm2.FlushContext{FlushHandle: rsp.ObjectHandle}).Execute(dev); err != nil {
		return nil, err
	}
	pub, err := rsp.OutPublic.Contents()
	if err != nil {
		return nil, err
	}
	return tpm2.Pub(*pub)
}

func (t *TPM) issue(key crypto.PublicKey) ([]byte, error) {
	signer, err := readPEM(filepath.Join(t.ca, "signkey.pem"), parseKey)
	if err != nil {
		return nil, err
	}
	issuer, err := readPEM(filepath.Join(t.ca, "issuercert.pem"), x509.ParseCertificate)
	if err != nil {
		return nil, err
	}
	tmpl := attesttest.EKTemplate(x509.KeyUsageKeyAgreement)
	tmpl.NotBefore, tmpl.NotAfter = time.Now().Add(-time.Hour), time.Now().AddDate(20, 0, 0)
	tmpl.SerialNumber = nil // drawn at random
	return x509.CreateCertificate(rand.Reader, tmpl, issuer, key, signer)
}

func readPEM[T any](path string, parse func([]byte) (T, error)) (v T, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return v, err
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return v, fmt.Errorf("%s: no PEM", path)
	}
	if v, err = parse(block.Bytes); err != nil {
		return v, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}

func parseKey(der []byte) (crypto.Signer, error) {
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("not a signing key")
	}
	return signer, nil
}

func writeNV(dev transport.TPM, index tpm2.TPMHandle, data []byte) error {
	public := tpm2.TPMSNVPublic{
		NVIndex: index, NameAlg: tpm2.TPMAlgSHA256, DataSize: uint16(len(data)),
		Attributes: tpm2.TPMANV{
			PPWrite: true, WriteDefine: true, PPRead: true, OwnerRead: true, AuthRead: true,
			NoDA: true, PlatformCreate: true, NT: tpm2.TPMNTOrdinary,
		},
	}
	_, err := tpm2.NVDefineSpace{AuthHandle: tpm2.TPMRHPlatform, PublicInfo: tpm2.New2B(public)}.Execute(dev)
	if err != nil {
		return fmt.Errorf("define NV 0x%08x: %w", uint32(index), err)
	}
	for off := 0; off < len(data); off += 512 {
		// Writing changes the index's name, so it is read each time.
		name, err := tpm2.NVReadPublic{NVIndex: index}.Execute(dev)
		if err != nil {
			return err
		}
		_, err = tpm2.NVWrite{
			AuthHandle: tpm2.AuthHandle{Handle: tpm2.TPMRHPlatform, Auth: tpm2.PasswordAuth(nil)},
			NVIndex:    tpm2.NamedHandle{Handle: index, Name: name.NVName},
			Data:       tpm2.TPM2BMaxNVBuffer{Buffer: data[off:min(off+512, len(data))]},
			Offset:     uint16(off),
		}.Execute(dev)
		if err != nil {
			return fmt.Errorf("write NV 0x%08x: %w", uint32(index), err)
		}
	}
	return nil
}
