package tpm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest/tpmwire"
)

// Quote is a signed statement of the TPM about its registers.
type Quote struct {
	Attest    []byte   // TPMS_ATTEST, as signed
	Signature []byte   // TPMT_SIGNATURE
	Values    [][]byte // of the registers, ascending
}

// Extend extends a digest into a register of the SHA-256 bank. The session is
// salted to the EK, so an altered command is noticed.
func (k *Keys) Extend(ctx context.Context, pcr int, digest []byte) error {
	_, err := tpm2.PCRExtend{
		PCRHandle: tpm2.AuthHandle{Handle: tpm2.TPMHandle(pcr), Auth: k.ek.session()},
		Digests: tpm2.TPMLDigestValues{Digests: []tpm2.TPMTHA{
			{HashAlg: tpm2.TPMAlgSHA256, Digest: digest},
		}},
	}.Execute(k.t.with(ctx))
	return explain(fmt.Sprintf("extend PCR %d", pcr), err)
}

// ReadPCRs reads registers of the SHA-256 bank, given in ascending order.
func (t *TPM) ReadPCRs(ctx context.Context, pcrs []int) ([][]byte, error) {
	var values [][]byte
	for len(values) < len(pcrs) {
		rest := pcrs[len(values):]
		rest = rest[:min(len(rest), 8)] // what one answer can hold
		rsp, err := tpm2.PCRRead{PCRSelectionIn: selection(rest)}.Execute(t.with(ctx))
		if err != nil {
			return nil, explain("read PCRs", err)
		}
		if len(rsp.PCRValues.Digests) != len(rest) {
			return nil, fmt.Errorf("TPM: read PCRs %v: got %d values: %w", rest, len(rsp.PCRValues.Digests), ErrBank)
		}
		for _, d := range rsp.PCRValues.Digests {
			values = append(values, d.Buffer)
		}
	}
	return values, nil
}

func selection(pcrs []int) tpm2.TPMLPCRSelection {
	nums := make([]uint, len(pcrs))
	for i, n := range pcrs {
		nums[i] = uint(n)
	}
	return tpm2.TPMLPCRSelection{PCRSelections: []tpm2.TPMSPCRSelection{
		{Hash: tpm2.TPMAlgSHA256, PCRSelect: tpm2.PCClientCompatible.PCRs(nums...)},
	}}
}

// maxQuoteTries bounds how often a quote is repeated because a register
// changed between reading and quoting.
const maxQuoteTries = 5

var errMoving = errors.New("the registers keep changing while they are quoted")

// Quote signs the registers and 32 bytes of qualifying data.
func (a *AK) Quote(ctx context.Context, pcrs []int, qualifying []byte) (*Quote, error) {
	for range maxQuoteTries {
		values, err := a.k.t.ReadPCRs(ctx, pcrs)
		if err != nil {
			return nil, err
		}
		rsp, err := tpm2.Quote{
			SignHandle:     a.signer(),
			QualifyingData: tpm2.TPM2BData{Buffer: qualifying},
			InScheme:       tpm2.TPMTSigScheme{Scheme: tpm2.TPMAlgNull},
			PCRSelect:      selection(pcrs),
		}.Execute(a.k.t.with(ctx))
		if err != nil {
			return nil, explain("quote", err)
		}
		q := &Quote{Attest: rsp.Quoted.Bytes(), Signature: tpm2.Marshal(rsp.Signature), Values: values}
		same, err := q.covers(values)
		if err != nil || same {
			return q, err
		}
	}
	return nil, fmt.Errorf("TPM: quote: %w", errMoving)
}

// covers reports whether the quote is about these values.
func (q *Quote) covers(values [][]byte) (bool, error) {
	a, err := tpmwire.Read[tpm2.TPMSAttest](q.Attest)
	if err != nil {
		return false, fmt.Errorf("TPM: quote: %w: %v", ErrBroken, err)
	}
	info, err := a.Attested.Quote()
	if err != nil {
		return false, fmt.Errorf("TPM: quote: %w: %v", ErrBroken, err)
	}
	sum := sha256.Sum256(bytes.Join(values, nil))
	return bytes.Equal(info.PCRDigest.Buffer, sum[:]), nil
}
