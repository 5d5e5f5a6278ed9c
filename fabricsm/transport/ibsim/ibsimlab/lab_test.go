package ibsimlab_test

import (
	"errors"
	"strings"
	"testing"

	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

func TestLabRunsDiagnostics(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(ibsimtest.TwoHosts))
	out := ibsimtest.Diag(t, lab, "h1", "ibnetdiscover")
	for _, want := range []string{`"H-0020000000000000"`, `"S-0010000100000001"`, "4xEDR"} {
		if !strings.Contains(out, want) {
			t.Errorf("ibnetdiscover does not mention %s:\n%s", want, out)
		}
	}
}

func TestConsoleChangesTheFabric(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(ibsimtest.TwoHosts))
	ibsimtest.Console(t, lab, `unlink "h1"[1]`)
	if out := ibsimtest.Diag(t, lab, "sm", "ibnetdiscover"); strings.Contains(out, "H-0020000000000100") {
		t.Errorf("the unlinked host is still seen:\n%s", out)
	}
	ibsimtest.Console(t, lab, `relink "h1"[1]`)
	if out := ibsimtest.Diag(t, lab, "sm", "ibnetdiscover"); !strings.Contains(out, "H-0020000000000100") {
		t.Errorf("the relinked host is not seen:\n%s", out)
	}
	if out := ibsimtest.Console(t, lab, "nonsense"); !strings.Contains(out, "unknown") {
		t.Errorf("answer to a wrong command: %q", out)
	}
}

func TestStartRefusesWhatIbsimRefuses(t *testing.T) {
	ibsimtest.Need(t)
	_, err := ibsimlab.Start(t.Context(), ibsimlab.Options{
		Netlist: []byte("Switch 2 \"a\"\n[9] \"b\"[1]\n\n"), Dir: t.TempDir(),
	})
	if err == nil || !strings.Contains(err.Error(), "did not become ready") {
		t.Fatalf("Start of a broken netlist: %v", err)
	}
}

func TestMissingNamesThePackage(t *testing.T) {
	_, err := ibsimlab.Find("portcullis-no-such-tool")
	var missing *ibsimlab.MissingError
	if !errors.As(err, &missing) || missing.Package != "infiniband-diags" {
		t.Fatalf("Find of a tool that does not exist: %v", err)
	}
}

func TestConsoleRefusesTwoLines(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(ibsimtest.TwoHosts))
	if _, err := lab.Console("attached\nquit"); err == nil {
		t.Fatal("a command of two lines was accepted")
	}
}
