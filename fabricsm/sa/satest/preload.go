package satest

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

//go:embed testdata/rmpp.c
var rmppSource []byte

// Preload is the value of LD_PRELOAD for libibumad programs on ibsim that need more of subnet administration than one MAD.
type Preload string

// BuildPreload compiles the libraries for use before and after the simulator's preload library, into a directory that must
// outlive the programs. The error is an *ibsimlab.MissingError where the library or the compiler is not installed.
func BuildPreload(ctx context.Context, dir string) (Preload, error) {
	library, err := ibsimlab.Preload()
	if err != nil {
		return "", err
	}
	compiler, err := exec.LookPath("gcc")
	if err != nil {
		return "", &ibsimlab.MissingError{Part: "gcc", Package: "gcc"}
	}
	source := filepath.Join(dir, "rmpp.c")
	if err := os.WriteFile(source, rmppSource, 0o600); err != nil {
		return "", fmt.Errorf("write rmpp.c: %w", err)
	}
	before, behind := filepath.Join(dir, "before.so"), filepath.Join(dir, "behind.so")
	for _, args := range [][]string{{"-o", before}, {"-DBEHIND", "-o", behind}} {
		// Fortified calls have other names, which the preload library lacks.
		args = append([]string{"-Wall", "-Werror", "-O1", "-U_FORTIFY_SOURCE", "-fPIC", "-shared"}, args...)
		cmd := exec.CommandContext(ctx, compiler, append(args, source, "-ldl", "-lpthread")...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("compile rmpp.c: %w: %s", err, out)
		}
	}
	return Preload(before + ":" + library + ":" + behind), nil
}

// Apply has a program that ibsimlab prepared run with it.
func (p Preload) Apply(cmd *exec.Cmd) {
	if p != "" {
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+string(p))
	}
}

// PartingTID is the lower half of the transaction id of the last query of a program with a Preload, for ClassPortInfo. The
// program itself does not use it.
const PartingTID = 0x5e771e
