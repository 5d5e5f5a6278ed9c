package agent

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"portcullis/attest"
	"portcullis/attest/tpm"
)

// handOver is a hand-over that was begun. After the cap this boot can attest nothing more, so the data that the service
// needs is written down before. It is valid only in one boot of one host. The second key in it is wrapped by the TPM, and
// signs only while the register is capped.
type handOver struct {
	Host    string `json:"host"`
	EK      string `json:"ek_sha256"`
	BootID  string `json:"boot_id"`       // of the kernel
	Reset   uint32 `json:"reset_count"`   // of the TPM
	Restart uint32 `json:"restart_count"` // of the TPM, since the reset

	AgentPCR  int          `json:"agent_pcr"`
	Open      []byte       `json:"open"`      // what the agent PCR held
	Statement []byte       `json:"statement"` // digest of the last one
	Key       tpm.StoredAK `json:"ak2"`

	Session string      `json:"session"`
	PCRs    []int       `json:"pcrs"`
	Channel string      `json:"channel"`
	Nonce   []byte      `json:"nonce"`
	Expires time.Time   `json:"expires"`      // of the nonce
	HostKey bool        `json:"host_key"`     // the service certifies a key of the host
	Token   statusToken `json:"status_token"` // reads this host's status, asks for another nonce, and grants nothing
}

// statusToken is kept in a file and sent, and shown nowhere.
type statusToken string

const hidden = "(hidden)"

func (statusToken) String() string       { return hidden }
func (statusToken) GoString() string     { return hidden }
func (statusToken) LogValue() slog.Value { return slog.StringValue(hidden) }

const (
	// maxText bounds each text and list of a record; the service's are far shorter.
	maxText = 1024
	// maxSession bounds the id of a session, which the service seals all of it in.
	maxSession = 8 << 10
)

// check requires all fields that are needed to go on. The content of a record is compared with the TPM before it is used.
func (h *handOver) check() error {
	for _, t := range []struct{ name, value string }{
		{"host", h.Host}, {"ek_sha256", h.EK}, {"boot_id", h.BootID}, {"session", h.Session}, {"status_token", string(h.Token)},
	} {
		limit := maxText
		if t.name == "session" {
			limit = maxSession
		}
		if t.value == "" || len(t.value) > limit {
			return fmt.Errorf("%s has %d bytes", t.name, len(t.value))
		}
	}
	for _, b := range []struct {
		name  string
		value []byte
		size  int
	}{{"open", h.Open, 32}, {"statement", h.Statement, 32}} {
		if len(b.value) != b.size {
			return fmt.Errorf("%s has %d bytes, want %d", b.name, len(b.value), b.size)
		}
	}
	switch {
	case len(h.Nonce) == 0 || len(h.Nonce) > maxText:
		return fmt.Errorf("nonce has %d bytes", len(h.Nonce))
	case len(h.Key.Public) == 0 || len(h.Key.Private) == 0:
		return errors.New("ak2 is missing")
	case h.Channel != attest.ChannelExporter && h.Channel != attest.ChannelNone:
		return fmt.Errorf("channel %q", h.Channel)
	case len(h.PCRs) == 0 || len(h.PCRs) > 24 || h.PCRs[0] < 0 || h.PCRs[len(h.PCRs)-1] > 23 || !slices.IsSorted(h.PCRs):
		return fmt.Errorf("pcrs %v", h.PCRs[:min(len(h.PCRs), 24)])
	}
	return nil
}

// capped reports whether the register holds what this hand-over left in it.
func (h *handOver) capped(value []byte) bool {
	return h != nil && bytes.Equal(value, attest.CappedPCRValue(h.Open))
}

// sameBoot returns the reason why this is not the boot of the hand-over, or nil if it is. The register alone cannot show
// that another kernel was started.
func (h *handOver) sameBoot(bootID string, now attest.Boot) error {
	switch {
	case h.BootID != bootID:
		return errors.New("another kernel was started since, without a reset (kexec)")
	case h.Reset != now.Reset || h.Restart != now.Restart:
		return fmt.Errorf("the TPM was restarted since (suspend): it was at %v, and is at %v", attest.Boot{Reset: h.Reset, Restart: h.Restart}, now)
	}
	return nil
}

// handOver returns the hand-over that was begun last, or nil if none was. A record that is not whole is errGarbled.
func (s *stateDir) handOver() (*handOver, error) {
	path := filepath.Join(s.dir, handOverFile)
	var h *handOver
	if err := s.load(handOverFile, &h); err != nil || h == nil {
		return nil, err
	}
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, errGarbled, err)
	}
	return h, nil
}
