package tpm

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest"
	"portcullis/attest/ek"
)

const (
	nvChunk    = 512        // bytes per read; every TPM allows at least this many
	firstChain = 0x01c00100 // NV indices where vendors keep issuing certificates
	maxChain   = 4
)

var errNoIndex = errors.New("NV index is not defined")

// certificates reads the EK certificate of a kind and the issuers stored in the TPM. If there is no certificate, it returns
// none and no error.
func (t *TPM) certificates(ctx context.Context, kind ek.Kind) ([][]byte, error) {
	leaf, err := t.readNV(ctx, kind.CertificateIndex())
	if errors.Is(err, errNoIndex) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("EK certificate %s: %w", kind, err)
	}
	if leaf, err = ek.Trim(leaf); err != nil {
		return nil, fmt.Errorf("EK certificate %s in NV 0x%08x: %w", kind, uint32(kind.CertificateIndex()), err)
	}
	certs := [][]byte{leaf}
	for i := range tpm2.TPMHandle(maxChain) {
		b, err := t.readNV(ctx, firstChain+i)
		if err != nil {
			break // issuers in NV are a convenience; the service knows its own
		}
		if b, err = ek.Trim(b); err == nil {
			certs = append(certs, b)
		}
	}
	return certs, nil
}

// readNV reads a whole NV index with its own empty password, or the owner's
// where the index allows only that.
func (t *TPM) readNV(ctx context.Context, index tpm2.TPMHandle) ([]byte, error) {
	rsp, err := tpm2.NVReadPublic{NVIndex: index}.Execute(t.with(ctx))
	if errors.Is(err, tpm2.TPMRCHandle) || errors.Is(err, tpm2.TPMRCValue) {
		return nil, errNoIndex
	}
	if err != nil {
		return nil, explain(fmt.Sprintf("read NV 0x%08x", uint32(index)), err)
	}
	public, err := rsp.NVPublic.Contents()
	if err != nil {
		return nil, fmt.Errorf("TPM: read NV 0x%08x: %w: %v", uint32(index), ErrBroken, err)
	}
	if !public.Attributes.Written {
		return nil, errNoIndex
	}
	if public.DataSize > attest.MaxCertificate {
		return nil, fmt.Errorf("TPM: NV 0x%08x holds %d bytes, more than a certificate of %d", uint32(index), public.DataSize, attest.MaxCertificate)
	}
	auth := tpm2.AuthHandle{Handle: index, Name: rsp.NVName, Auth: tpm2.PasswordAuth(nil)}
	if !public.Attributes.AuthRead {
		auth = tpm2.AuthHandle{Handle: tpm2.TPMRHOwner, Auth: tpm2.PasswordAuth(nil)}
	}
	var data []byte
	for size := public.DataSize; uint16(len(data)) < size; {
		n := min(size-uint16(len(data)), nvChunk)
		part, err := tpm2.NVRead{
			AuthHandle: auth, NVIndex: tpm2.NamedHandle{Handle: index, Name: rsp.NVName},
			Size: n, Offset: uint16(len(data)),
		}.Execute(t.with(ctx))
		if err != nil {
			return nil, explain(fmt.Sprintf("read NV 0x%08x", uint32(index)), err)
		}
		if len(part.Data.Buffer) != int(n) {
			return nil, fmt.Errorf("TPM: read NV 0x%08x: %w: %d bytes instead of %d", uint32(index), ErrBroken, len(part.Data.Buffer), n)
		}
		data = append(data, part.Data.Buffer...)
	}
	return data, nil
}
