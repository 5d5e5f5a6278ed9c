//go:build vm

package selinux_test

import (
	"strings"
	"testing"

	"portcullis/packaging/vm/inside/guest"
)

// The machine has enforced the policy from before the first program of its system on.
func TestEnforcing(t *testing.T) {
	enforcing(t)
	if got := guest.Read(t, "/sys/fs/selinux/policyvers"); got < "31" {
		t.Errorf("policy version %s, want 31 at least", got)
	}
	if got := strings.TrimRight(guest.Read(t, "/proc/self/attr/current"), "\x00"); got != services {
		t.Errorf("this test runs as %s, want %s", got, services)
	}
	for _, class := range []string{"infiniband_pkey/perms/access", "infiniband_endport/perms/manage_subnet"} {
		if !guest.Exists("/sys/fs/selinux/class/" + class) {
			t.Errorf("the policy has no %s", class)
		}
	}
}

func enforcing(t *testing.T) {
	t.Helper()
	if got := guest.Read(t, "/sys/fs/selinux/enforce"); got != "1" {
		t.Fatalf("enforce is %s, want 1", got)
	}
}

// An adapter that appears where labels are in force works: the kernel's own agents may do what they need.
func TestAdapterAppears(t *testing.T) {
	log := listen(t)
	prepare(t)
	plug(t, first, byKernel)
	plug(t, second, byKernel)
	log.none(t)
	startManager(t)
	log.none(t)
	for _, device := range []string{first, second} {
		guest.Do(t, "runcon", manager, "smpquery", "-C", device, "-D", "nodedesc", "0")
	}
}

// TestModuleFromThisMachine checks that the agent writes in the machine the same module that is in force.
func TestModuleFromThisMachine(t *testing.T) {
	const made = "/root/portcullis.cil"
	guest.Do(t, "portcullis-agent", "selinux", "--host-file", "/suite/host.json", "--labels", "/suite/labels.yaml", "--output", made)
	if got, want := guest.Read(t, made), guest.Read(t, "/suite/portcullis.cil"); got != want {
		t.Errorf("the agent writes here\n%s\nand wrote for the installed policy\n%s", got, want)
	}
}

// The manager's domain alone manages the subnet.
func TestOthersDoNotManage(t *testing.T) {
	file := madFile(t, first)
	for _, context := range []string{other, rogue, tenant + "s0:c1,c2", services, unconfined, container + "s0:c1,c2", virtualMachine + "s0:c1,c2"} {
		log := listen(t)
		if line := try(t, context, "manage", file); !strings.Contains(line, "register: permission denied") {
			t.Errorf("%s: %q, want that the kernel refuses to register", context, line)
		}
		log.expect(t, "manage_subnet", classEndPort, context, endPortLabel)
	}
	if line := try(t, manager, "manage", file); line != "registered" {
		t.Errorf("the manager: %q", line)
	}
	// Our own programs name the reason.
	e := guest.Try(t, "runcon", other, "portcullisd", "sm", "--once", "--port", "umad:"+first)
	if e.Code == 0 || !strings.Contains(e.All, "SELinux") {
		t.Errorf("portcullisd in another domain: exit status %d, %q, want that it names SELinux", e.Code, e.All)
	}
	managerRuns(t)
}

// A queue pair may use a partition whose categories its process has, in a domain that is a user's.
func TestQueuePairs(t *testing.T) {
	const defaultLabel = "system_u:object_r:portcullis_default_pkey_t:s0"
	red, blue, none := index(t, first, redPKey), index(t, first, bluePKey), index(t, first, "0xffff")
	for _, tt := range []struct{ context, index, denied string }{
		{tenant + "s0:c1,c2", red, ""},
		{tenant + "s0:c1,c2,c5", red, ""},
		{tenant + "s0:c1", red, pkeyLabel("c1,c2")},
		{tenant + "s0:c3,c4", red, pkeyLabel("c1,c2")},
		{tenant + "s0:c3,c4", blue, ""},
		{tenant + "s0:c1,c2", none, defaultLabel},
		{container + "s0:c1,c2", red, ""},
		{container + "s0:c3,c4", red, pkeyLabel("c1,c2")},
		{container + "s0:c3,c4", blue, ""},
		{container + "s0:c1,c2", none, defaultLabel},
		{virtualMachine + "s0:c1,c2", red, ""},
		{virtualMachine + "s0:c3,c4", red, pkeyLabel("c1,c2")},
		{virtualMachine + "s0:c3,c4", blue, ""},
		{rogue + ":c1,c2", red, pkeyLabel("c1,c2")},
		{other + ":c1,c2", red, pkeyLabel("c1,c2")},
		{manager, red, pkeyLabel("c1,c2")},
		{services, red, pkeyLabel("c1,c2")},
		{unconfined, blue, pkeyLabel("c3,c4")},
		{unconfined, none, defaultLabel},
	} {
		log := listen(t)
		line := try(t, tt.context, "hold", first, tt.index)
		switch {
		case tt.denied == "" && line != "ready":
			t.Errorf("%s with P_Key index %s: %q, want a queue pair", tt.context, tt.index, line)
		case tt.denied == "":
			log.none(t)
		case !strings.Contains(line, "initialize") || !strings.Contains(line, "permission denied"):
			t.Errorf("%s with P_Key index %s: %q, want that INIT is denied", tt.context, tt.index, line)
		default:
			log.expect(t, "access", classPKey, tt.context, tt.denied)
		}
	}
}

// Packets of management are sent and received in partitions that both ends may use.
func TestManagementPackets(t *testing.T) {
	explain(t)
	red, blue := index(t, first, redPKey), index(t, first, bluePKey)
	for _, tt := range []struct {
		name, server, client, index string
		denied                      string // the server's or the client's context; "" neither
	}{
		{"red's", tenant + "s0:c1,c2", tenant + "s0:c1,c2", red, ""},
		{"between red's containers", container + "s0:c1,c2", container + "s0:c1,c2", red, ""},
		{"blue's", tenant + "s0:c3,c4", tenant + "s0:c3,c4", blue, ""},
		{"blue in red's partition", tenant + "s0:c1,c2", tenant + "s0:c3,c4", red, tenant + "s0:c3,c4"},
		{"blue's container in red's partition", container + "s0:c1,c2", container + "s0:c3,c4", red, container + "s0:c3,c4"},
		{"the manager in red's partition", tenant + "s0:c1,c2", manager, red, manager},
		{"red to a server of blue's", tenant + "s0:c3,c4", tenant + "s0:c1,c2", red, tenant + "s0:c3,c4"},
		{"red to a container of blue's", container + "s0:c3,c4", tenant + "s0:c1,c2", red, container + "s0:c3,c4"},
		{"red to a server of no tenant", other, tenant + "s0:c1,c2", red, other},
	} {
		log := listen(t)
		server := start(t, tt.server, "serve", madFile(t, second))
		server.expect(t, "ready")
		client := start(t, tt.client, "ask", madFile(t, first), tt.index, lid(t, second))
		switch tt.denied {
		case "":
			server.expect(t, "asked with index "+tt.index)
			client.expect(t, "answered")
			log.none(t)
		case tt.client:
			client.expect(t, "error: send: permission denied")
			log.expect(t, "access", classPKey, tt.client, pkeyLabel("c1,c2"))
		case tt.server:
			log.expect(t, "access", classPKey, tt.server, pkeyLabel("c1,c2"))
			client.kill()
		}
		server.end(t)
		if line := server.line(t); line != "" {
			t.Errorf("%s: the server writes %q, want nothing after the end of its input", tt.name, line)
		}
	}
}

// When the Subnet Manager takes a partition away, the kernel puts the queue pairs in it into error, and no other.
func TestPartitionTakenAway(t *testing.T) {
	explain(t)
	red := start(t, tenant+"s0:c1,c2", "hold", second, index(t, second, redPKey))
	blue := start(t, tenant+"s0:c3,c4", "hold", second, index(t, second, bluePKey))
	red.expect(t, "ready")
	blue.expect(t, "ready")
	partitions(t, tables+blueTable)
	red.expect(t, "error state")
	blue.end(t)
	blue.expect(t, "still ready")
	partitions(t, tables+redTable+blueTable)
	active(t, second)
}

// A pulled adapter returns and works, whichever program loads its driver; but not where that is no program that loads drivers.
func TestAdapterReturns(t *testing.T) {
	for _, context := range []string{byKernel, udev, modprobe, modulesLoad} {
		log := listen(t)
		unplug(t, second)
		plug(t, second, context)
		active(t, second)
		log.none(t)
		if e := guest.Try(t, "runcon", manager, "smpquery", "-C", second, "-D", "nodedesc", "0"); e.Code != 0 {
			t.Errorf("driver loaded by %q: the manager asks the adapter: exit status %d\n%s", context, e.Code, e.All)
		}
	}
	log := listen(t)
	unplug(t, second)
	plug(t, second, unconfined)
	log.expect(t, "manage_subnet", classEndPort, unconfined, endPortLabel)
	if line := try(t, manager, "manage", madFile(t, second)); !strings.HasPrefix(line, "error: register:") {
		t.Errorf("the manager on a port that the kernel did not open: %q, want an error", line)
	}
	unplug(t, second)
	plug(t, second, byKernel)
	active(t, second)
	managerRuns(t)
}

// Loading the policy again keeps what the kernel and the manager have.
func TestPolicyLoadedAgain(t *testing.T) {
	log := listen(t)
	guest.Do(t, "load_policy")
	log.none(t)
	managerRuns(t)
	for _, device := range []string{first, second} {
		guest.Do(t, "runcon", manager, "smpquery", "-C", device, "-D", "nodedesc", "0")
	}
}

// The agent's check names what other modules add; the kernel grants none of it, though Debian's semodule installed it.
func TestCheck(t *testing.T) {
	if text := guest.Read(t, "/etc/selinux/semanage.conf"); !strings.Contains(text, "expand-check=0") {
		t.Errorf("Debian's semanage.conf does not turn off the check of neverallow rules any more:\n%s", text)
	}
	e := guest.Try(t, "portcullis-agent", "selinux", "--host-file", "/suite/host.json", "--labels", "/suite/labels.yaml", "--check")
	if e.Code != 1 || strings.Count(e.All, "lab_rogue_t") < 2 {
		t.Errorf("selinux --check: exit status %d, want 1, and both rules of lab_rogue_t\n%s", e.Code, e.All)
	}
}

// The agent says what it finds of SELinux.
func TestDoctor(t *testing.T) {
	e := guest.Try(t, "portcullis-agent", "doctor")
	for line := range strings.Lines(e.All) {
		if strings.Contains(line, "selinux") {
			if !strings.Contains(line, "expand-check=0") || strings.Contains(line, "CONFIG_SECURITY_INFINIBAND") || strings.Contains(line, "permissive") {
				t.Errorf("doctor says %q, want only that semodule does not check neverallow rules", line)
			}
			return
		}
	}
	t.Errorf("doctor says nothing of SELinux:\n%s", e.All)
}

// semodule installs a module of other labels here. The policy that it compiles and loads puts the queue pairs that it denies into
// error, and no other.
func TestLabelsChange(t *testing.T) {
	red := index(t, second, redPKey)
	before := start(t, tenant+"s0:c1,c2", "hold", second, red)
	both := start(t, tenant+"s0:c1,c2,c5,c6", "hold", second, red)
	blue := start(t, tenant+"s0:c3,c4", "hold", second, index(t, second, bluePKey))
	for _, p := range []*program{before, both, blue} {
		p.expect(t, "ready")
	}
	if line := try(t, tenant+"s0:c5,c6", "hold", second, red); !strings.Contains(line, "permission denied") {
		t.Errorf("with the categories of later: %q, want that it is denied", line)
	}
	const module = "/root/other/portcullis.cil" // semodule names a module by its file
	guest.Do(t, "mkdir", "/root/other")
	guest.Do(t, "portcullis-agent", "selinux", "--host-file", "/suite/host.json", "--labels", "/suite/other.yaml", "--output", module)
	installed(t, "/suite/portcullis.cil")
	log := listen(t)
	guest.Do(t, "semodule", "-X", "300", "-i", module)
	installed(t, module)
	enforcing(t)
	before.expect(t, "error state")
	log.expect(t, "access", classPKey, tenant+"s0:c1,c2", pkeyLabel("c5,c6"))
	for _, p := range []*program{both, blue} {
		p.end(t)
		p.expect(t, "still ready")
	}
	if line := try(t, tenant+"s0:c5,c6", "hold", second, red); line != "ready" {
		t.Errorf("with the categories of now: %q", line)
	}
	// The rule of another module is in the new policy, too, and is still denied.
	log = listen(t)
	if line := try(t, rogue, "manage", madFile(t, first)); !strings.Contains(line, "register: permission denied") {
		t.Errorf("%s: %q, want that the kernel refuses to register", rogue, line)
	}
	log.expect(t, "manage_subnet", classEndPort, rogue, endPortLabel)
	managerRuns(t)
}

// installed tests that semodule lists the agent's module under the priority that it was installed with, and that its text in the
// store is that of a file.
func installed(t *testing.T, file string) {
	t.Helper()
	listed := false
	for line := range strings.Lines(guest.Do(t, "semodule", "--list-modules=full")) {
		f := strings.Fields(line)
		listed = listed || len(f) >= 3 && f[0] == "300" && f[1] == "portcullis"
	}
	if !listed {
		t.Error("semodule lists no module portcullis of priority 300")
	}
	t.Chdir(t.TempDir()) // where semodule writes the module
	guest.Do(t, "semodule", "--cil", "-X", "300", "--extract", "portcullis")
	if got, want := guest.Read(t, "portcullis.cil"), guest.Read(t, file); got != want {
		t.Errorf("the module of the store is\n%s\nwant that of %s\n%s", got, file, want)
	}
}
