package tpm

import (
	"errors"
	"fmt"

	"github.com/google/go-tpm/tpm2"
)

// Classes of faults, for errors.Is. The text of each says what to do.
var (
	ErrMissing    = errors.New("no TPM there; enable the TPM in the firmware setup and load its kernel driver, or name another device")
	ErrPermission = errors.New("not allowed to open the TPM; run as root or as a member of the group that owns the device, usually tss")
	ErrBusy       = errors.New("another program holds the TPM; stop it, and use /dev/tpmrm0 rather than /dev/tpm0")
	ErrNotTPM     = errors.New("not a TPM device; want a character device such as /dev/tpmrm0, or unix:PATH of a socket")
	ErrSilent     = errors.New("the TPM does not answer; power-cycle the host, and replace the TPM if that does not help")
	ErrStuck      = errors.New("the kernel still waits for the TPM's answer to an earlier command; try again in five minutes, and power-cycle the host if that does not help")
	ErrBroken     = errors.New("the TPM answers with malformed data")
	// ErrEndorsementAuth means that an earlier tenant set the endorsement password.
	ErrEndorsementAuth = errors.New("the TPM's endorsement hierarchy has a password, left by an earlier owner; clear the TPM through the firmware (physical presence or BMC)")
	// ErrOwnerAuth means that an earlier tenant set the owner's password.
	ErrOwnerAuth = errors.New("the TPM's owner hierarchy has a password, left by an earlier owner; clear the TPM through the firmware (physical presence or BMC)")
	// ErrForeignKey means that a stored key was made in another TPM, or before the
	// TPM was cleared.
	ErrForeignKey = errors.New("the key was made in another TPM, or before the TPM was cleared; hand the host over again")
	// ErrDisabled follows a firmware that switched the hierarchy off.
	ErrDisabled = errors.New("the TPM's endorsement hierarchy is disabled; enable it in the firmware setup")
	// ErrEKMismatch means that the TPM (or an attacker on its bus) offers another EK than the certificate in its NV memory
	// names.
	ErrEKMismatch = errors.New("the EK is not the one its certificate names; the TPM or its bus cannot be trusted")
	// ErrCredential means the credential was not made for this EK and AK.
	ErrCredential = errors.New("the TPM refused the service's credential: it was made for another TPM or key; check the host's EK digest in inventory")
	// ErrPolicy means that the agent PCR is not in the state a key was made for.
	ErrPolicy = errors.New("the agent's PCR has changed since the key was made: the host was handed over in this boot, or something else was measured; reboot it")
	// ErrStoredAK means that a kept attestation key cannot be used.
	ErrStoredAK = errors.New("the stored attestation key is damaged, of another state of the register, or of another TPM")
	// ErrNoEK means no supported EK template works on this TPM.
	ErrNoEK = errors.New("the TPM supports none of the EK templates ECC P-256, ECC P-384, RSA-2048")
	// ErrBank means the SHA-256 PCR bank is not active.
	ErrBank = errors.New("the TPM's SHA-256 PCR bank is not active; allocate it in the firmware setup")
	// ErrNotStarted means that neither firmware nor kernel has sent Startup.
	ErrNotStarted = errors.New("the TPM has not been started; the firmware does this, or for a software TPM its starter")
)

// explain adds the class to the TPM's error.
func explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	for _, c := range []struct {
		code  tpm2.TPMRC
		class error
	}{
		{tpm2.TPMRCBadAuth, ErrEndorsementAuth},
		{tpm2.TPMRCAuthFail, ErrEndorsementAuth},
		{tpm2.TPMRCHierarchy, ErrDisabled},
		{tpm2.TPMRCIntegrity, ErrCredential},
		{tpm2.TPMRCInitialize, ErrNotStarted},
		{tpm2.TPMRCPolicyFail, ErrPolicy},
		{tpm2.TPMRCPolicy, ErrPolicy},
	} {
		if errors.Is(err, c.code) {
			return fmt.Errorf("TPM: %s: %w (%v)", doing, c.class, err)
		}
	}
	return fmt.Errorf("TPM: %s: %w", doing, err)
}
