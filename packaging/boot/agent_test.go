//go:build boot

package boot

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"portcullis/attest/tpm/tpmtest"
)

const (
	agentFile = "/etc/portcullis/agent.yaml"
	host      = "/srv/host" // the kernel's trees of a host with an adapter
	netlist   = "/srv/fabric.net"
)

// fabric has a subnet manager's node, a switch and the host's adapter.
const fabric = `caguid=0x30000000000000
Ca 1 "sm"
[1] "leaf"[36] # lid 0 lmc 0 "leaf" lid 0 4xHDR

caguid=0x20000000000100
Ca 1 "hca"
[1] "leaf"[1] # lid 0 lmc 0 "leaf" lid 0 4xHDR

switchguid=0x10000000000000
Switch 36 "leaf"
[1] "hca"[1] # lid 0 lmc 0 "hca" lid 0 4xHDR
[36] "sm"[1] # lid 0 lmc 0 "sm" lid 0 4xHDR
`

// configure writes the agent's configuration.
func configure(t testing.TB, lines ...string) {
	t.Helper()
	put(t, agentFile, strings.Join(append([]string{"service: https://localhost:8443", "host: compute-01"}, lines...), "\n")+"\n")
}

// givenUp wants an end of the agent after which it is not started again.
func givenUp(t *testing.T, code string) {
	t.Helper()
	want(t, agent, "ActiveState=failed", "Result=exit-code", "NRestarts=0", "ExecMainStatus="+code)
}

// triedAgain wants one after which it is.
func triedAgain(t *testing.T, code string) {
	t.Helper()
	want(t, agent, "ActiveState=activating", "SubState=auto-restart", "ExecMainStatus="+code)
}

func agentWithoutConfiguration(t *testing.T) {
	must(t, os.Rename(agentFile, agentFile+".away"))
	fails(t, agent)
	givenUp(t, "243")
	must(t, os.Rename(agentFile+".away", agentFile))
}

// agentUnconfigured starts it with the file as it is delivered.
func agentUnconfigured(t *testing.T) {
	fails(t, agent, "service is not set", "host is not set")
	givenUp(t, "2")
}

// agentWithoutAdapter reads its file and the CA as credentials, which the account of
// the agent could not read.
func agentWithoutAdapter(t *testing.T) {
	configure(t)
	must(t, os.Chmod(agentFile, 0o600))
	ca, err := os.ReadFile("/etc/portcullis/tls/ca.pem")
	must(t, err)
	put(t, "/etc/portcullis/ca.pem", string(ca))
	must(t, os.Chmod("/etc/portcullis/ca.pem", 0o600))
	fails(t, agent, "no InfiniBand adapter")
	triedAgain(t, "4")
}

func agentWithoutTPM(t *testing.T) {
	put(t, netlist, fabric)
	do(t, "portcullis-sim", "sysfs", netlist, "--out", host, "--hca", "hca")
	configure(t, "sysfs: "+host+"/sys", "procfs: "+host+"/proc")
	fails(t, agent, "/dev/tpmrm0")
	triedAgain(t, "3")
	noted(t, agent, `"exit_code":3`)
	if e := try(t, "portcullis-agent", "status"); e.code != 3 {
		t.Errorf("portcullis-agent status: exit %d, want 3\n%s", e.code, e.all)
	}
}

func agentDiskFull(t *testing.T) {
	const state = "/var/lib/portcullis-agent"
	do(t, "mount", "-t", "tmpfs", "-o", "nr_inodes=1,mode=0700,uid=portcullis-agent,gid=portcullis-agent", "none", state)
	defer do(t, "umount", state)
	fails(t, agent, "no space left on device")
	triedAgain(t, "1")
	do(t, "systemctl", "stop", agent)
}

// agentDoctor runs the doctor in the sandbox of the agent, and in the wider one for the vendor's tools, with an adapter
// that has no node of fwctl.
func agentDoctor(t *testing.T) {
	doctor := "portcullis-agent-doctor.service"
	const function = host + "/sys/bus/pci/devices/0000:17:00.0/"
	for name, text := range map[string]string{"vendor": "0x15b3", "device": "0x1021", "class": "0x020700", "config": ""} {
		put(t, function+name, text+"\n")
	}
	defer func() { must(t, os.RemoveAll(function)) }()
	fails(t, doctor, "no node for it", "the account root; the capability CAP_SYS_ADMIN; writing to configuration space", "tpm: ")
	want(t, doctor, "ExecMainStatus=1")

	text, err := os.ReadFile("/usr/share/portcullis/vendor-tools.conf")
	must(t, err)
	override := "/run/systemd/system/" + doctor + ".d/vendor-tools.conf"
	// The simulated bus lies elsewhere.
	put(t, override, strings.Replace(string(text), "ReadWritePaths=", "ReadWritePaths="+host+"/sys ", 1))
	do(t, "systemctl", "daemon-reload")
	fails(t, doctor, "vendor-tools: ")
	run := is(t, doctor)["InvocationID"]
	if out := do(t, "journalctl", "--no-pager", "--output=cat", "_SYSTEMD_INVOCATION_ID="+run); strings.Contains(out, "the account root") || strings.Contains(out, "CAP_SYS_ADMIN") || strings.Contains(out, "configuration space") {
		t.Errorf("vendor-tools.conf leaves something out:\n%s", out)
	}
	must(t, os.Remove(override))
	do(t, "systemctl", "daemon-reload")
}

// softTPM starts a software TPM that the agent's account may open.
func softTPM(t *testing.T) *tpmtest.TPM {
	t.Helper()
	tpm := tpmtest.New(t, tpmtest.Options{Dir: "/srv/tpm"})
	socket, _ := strings.CutPrefix(tpm.Device(), "unix:")
	must(t, os.Chmod("/srv/tpm", 0o755))
	must(t, os.Chmod(socket, 0o666))
	must(t, tpm.PlantEventLog(host+"/sys"))
	return tpm
}

// agentProvisions goes the way of a new host, from a service that is away to its
// admission.
func agentProvisions(t *testing.T) {
	tpm := softTPM(t)
	settings := []string{"sysfs: " + host + "/sys", "procfs: " + host + "/proc", "tpm: " + tpm.Device()}
	// The firmware's event log is root's, as it is where the unit takes it from.
	put(t, "/run/systemd/system/"+agent+".d/trial.conf", "[Service]\nLoadCredential=eventlog:"+host+"/sys/"+tpmtest.EventLogFile+"\n")
	do(t, "systemctl", "daemon-reload")
	do(t, "systemctl", "stop", service)

	// It is ready before the service answers, and ends when its time is over.
	configure(t, append(settings, "timeout: 5s")...)
	do(t, "systemctl", "start", agent)
	await(t, "the agent gives up on the service", func() bool { return is(t, agent)["SubState"] == "auto-restart" })
	triedAgain(t, "5")
	do(t, "systemctl", "stop", agent)

	serve(t, tpm)
	configure(t, append(settings, "timeout: 2m")...)
	do(t, "systemctl", "start", agent)
	await(t, "the agent is refused", func() bool { return is(t, agent)["ActiveState"] == "failed" })
	givenUp(t, "6") // no operator has said which boots are trusted
	var set struct{ Name string }
	must(t, json.Unmarshal([]byte(portcullis(t, "reference", "learn", "default", "--host", "compute-01", "--reason", "trial", "-o", "json")), &set))
	do(t, "portcullis", "reference", "approve", set.Name, "--service", "https://localhost:8443", "--ca", "/etc/portcullis/tls/ca.pem", "--token-file", second)

	do(t, "systemctl", "reset-failed")
	do(t, "systemctl", "start", agent)
	await(t, "the host is admitted", func() bool { return is(t, agent)["SubState"] == "exited" })
	want(t, agent, "ActiveState=active", "Result=success", "ExecMainStatus=0", "NRestarts=0", "StatusText=admitted to lattice")
	says(t, portcullis(t, "host", "show", "compute-01"), "admitted")

	// In the same boot it has nothing more to attest, and is ready all the same.
	do(t, "systemctl", "restart", agent)
	await(t, "the agent finds the host admitted", func() bool { return is(t, agent)["SubState"] == "exited" })
	want(t, agent, "ActiveState=active", "StatusText=admitted to lattice")
}

const second = "/etc/portcullis/second.token"

// serve has the service run the fabric, and registers the host with it.
func serve(t *testing.T, tpm *tpmtest.TPM) {
	t.Helper()
	simulator := exec.CommandContext(t.Context(), "portcullis-sim", "run", netlist, "--socket", "trial")
	console, err := simulator.StdinPipe() // it ends when its console does
	must(t, err)
	must(t, simulator.Start())
	t.Cleanup(func() { _ = console.Close(); _ = simulator.Wait() })

	token := do(t, "portcullisd", "token", "--name", "second", "--role", "operator")
	must(t, os.WriteFile(second, []byte(token), 0o600))
	tokens, err := os.ReadFile("/etc/portcullis/tokens.yaml")
	must(t, err)
	must(t, os.WriteFile("/etc/portcullis/tokens.yaml", fmt.Appendf(tokens, "- {name: second, role: operator, sha256: %x}\n", sha256.Sum256([]byte(strings.TrimSpace(token)))), 0o640))
	roots, err := tpm.RootsPEM()
	must(t, err)
	put(t, "/etc/portcullis/vendor.pem", string(roots))
	put(t, configuration, `listen: 127.0.0.1:8443
tls: {cert: /etc/portcullis/tls/server.pem, key: /etc/portcullis/tls/server.key}
tokens: /etc/portcullis/tokens.yaml
fabric: {port: "ibsim:trial/sm", keys: {root: /etc/portcullis/keys.root}}
attestation: {ek: {roots: [/etc/portcullis/vendor.pem]}, assurance: none, require_lock: false}
`)
	put(t, "/srv/inventory.yaml", fmt.Sprintf(`hosts:
  - id: compute-01
    ek_sha256: %s
    hcas:
      - {node_guid: 0x0020000000000100, system_image_guid: 0x0020000000000100, ports: [{port: 1, guid: 0x0020000000000101}]}
cables:
  - {guid: 0x0020000000000101, switch: 0x0010000000000000, port: 1}
`, tpm.EKDigest()))
	do(t, "systemctl", "start", service)
	for _, args := range []string{
		"inventory import /srv/inventory.yaml", "tenant create physics", "cluster create lattice --tenant physics",
		"host assign compute-01 --cluster lattice",
	} {
		portcullis(t, strings.Fields(args)...)
	}
}
