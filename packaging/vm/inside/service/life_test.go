//go:build vm

package service_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"portcullis/packaging/vm/inside/guest"
)

// attaches: the device files are the service's by its udev rule, and the Subnet Manager shows itself on the port.
func attaches(t *testing.T) {
	owned(t)
	if !isSM(t) {
		t.Error("the port does not show a Subnet Manager")
	}
	guest.UnitSays(t, service, "attached to the fabric", "port=umad:"+adapter)
}

// owned compares owner and mode of the device files.
func owned(t *testing.T) {
	t.Helper()
	for kind, group := range map[string]string{"umad": "portcullis-umad", "issm": "portcullis"} {
		if got, want := strings.TrimSpace(guest.Do(t, "stat", "--format=%A %U %G", device(t, kind))), "crw-rw---- root "+group; got != want {
			t.Errorf("%s is %s, want %s", device(t, kind), got, want)
		}
	}
}

// cage checks the process as the kernel shows it, and systemd's report on the unit and its rules.
func cage(t *testing.T) {
	is := guest.Unit(t, service)
	process := "/proc/" + is["MainPID"]
	guest.Want(t, guest.Read(t, process+"/status"), "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2")
	for _, space := range []string{"user", "mnt"} {
		of, err := os.Readlink(process + "/ns/" + space)
		if err != nil {
			t.Fatal(err)
		}
		if ours, err := os.Readlink("/proc/self/ns/" + space); err != nil || of == ours {
			t.Errorf("the service is in our %s namespace, %s (%v)", space, of, err)
		}
	}
	for path, mode := range map[string]os.FileMode{
		state: 0o700 | os.ModeDir, "/etc/portcullis/keys.root": 0o640, "/etc/portcullis/tls/ca.key": 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s has mode %v (%v), want %v", path, info.Mode(), err, mode)
		}
	}
	// Only DevicePolicy keeps a process of root's in the unit's control group from devices.
	procs := "/sys/fs/cgroup" + is["ControlGroup"] + "/cgroup.procs"
	for file, allowed := range map[string]bool{device(t, "umad"): true, "/dev/null": true, "/dev/vda": false, "/dev/kmsg": false} {
		e := guest.Try(t, "sh", "-c", `echo $$ >"$0" && exec 3<"$1"`, procs, file)
		denied := strings.Contains(e.All, "Operation not permitted")
		if denied == allowed {
			t.Errorf("a process of the unit opens %s: exit status %d, %s; want allowed: %v", file, e.Code, e.All, allowed)
		}
	}
	guest.Do(t, "systemd-analyze", "security", "--no-pager", "--threshold=25", service) // 2.5
	if out := guest.Try(t, "systemd-analyze", "verify", "--man=no", "/usr/lib/systemd/system/"+service); out.Code != 0 || out.All != "" {
		t.Errorf("systemd-analyze verify: %s", out.All)
	}
	if log := guest.Do(t, "journalctl", "--no-pager", "--output=cat", "--unit=systemd-udevd.service"); strings.Contains(log, "60-portcullis") {
		t.Errorf("udev finds fault with the rules:\n%s", log)
	}
}

// bothPackages: the agent tries whether a locked adapter lets the host send, on the device that the service manages by.
func bothPackages(t *testing.T) {
	guest.Try(t, "systemctl", "start", "portcullis-agent-doctor.service") // fails: this machine has no TPM
	guest.UnitSays(t, "portcullis-agent-doctor.service", "umad", adapter+" port 1 by umad", "ok")
	owned(t)
}

// reload has a changed setting come into force in the process that runs.
func reload(t *testing.T) {
	before := guest.Unit(t, service)
	replace(t, "    hoq_life: 18\n", "    hoq_life: 17\n")
	defer replace(t, "    hoq_life: 17\n", "    hoq_life: 18\n")
	guest.Do(t, "systemctl", "reload", service)
	guest.UnitSays(t, service, "reloaded certificate and tokens")
	guest.UnitSays(t, service, "the configuration was read again", "fabric.ports.hoq_life")
	guest.Eventually(t, guest.UnitLimit, "the setting is written to the fabric", func() bool { return sets(t)["Set PortInfo"] > 0 })
	guest.UnitHas(t, service, "ActiveState=active", "MainPID="+before["MainPID"])
}

// replace changes the configuration.
func replace(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(configuration)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), from, to, 1)
	if changed == string(text) {
		t.Fatalf("%s has no line %q", configuration, from)
	}
	guest.Write(t, configuration, changed) // keeps owner and mode
}

// secondService is started by hand, by an operator who did not see the first.
func secondService(t *testing.T) {
	pid := guest.Unit(t, service)["MainPID"]
	e := guest.Try(t, "setpriv", "--reuid=portcullis", "--regid=portcullis", "--clear-groups", "portcullisd", "--config", configuration)
	if e.Code == 0 {
		t.Fatal("a second service runs on the same state")
	}
	guest.Want(t, e.All, "portcullisd: ", pid, "hint: one service holds a state directory")
	guest.UnitHas(t, service, "ActiveState=active", "MainPID="+pid)
}

// watchdog has systemd start the service again at once when it is killed, and watch that run closely, for TestHangs.
const watchdog = "/run/systemd/system/" + service + ".d/watchdog.conf"

// killed: the kernel clears IsSM at once, and systemd starts the service again.
func killed(t *testing.T) {
	guest.Write(t, watchdog, "[Service]\nWatchdogSec=3s\nRestartSec=100ms\n")
	guest.Do(t, "systemctl", "daemon-reload")
	before := guest.Unit(t, service)
	guest.Do(t, "systemctl", "kill", "--signal=KILL", "--kill-whom=main", service)
	guest.Eventually(t, 10*time.Second, "the port shows no Subnet Manager any more", func() bool { return !isSM(t) })
	now := settled(t, before["MainPID"])
	if now["NRestarts"] == before["NRestarts"] {
		t.Errorf("systemd did not start the service again: %s restarts", now["NRestarts"])
	}
	if !isSM(t) {
		t.Error("after the restart the port does not show a Subnet Manager")
	}
}

// hangs stops the process, so that the watchdog hears nothing of it.
func hangs(t *testing.T) {
	before := guest.Unit(t, service)
	guest.Do(t, "systemctl", "kill", "--signal=STOP", "--kill-whom=main", service)
	guest.Eventually(t, guest.UnitLimit, "systemd starts the service again", func() bool {
		return guest.Unit(t, service)["NRestarts"] != before["NRestarts"]
	})
	if err := os.Remove(watchdog); err != nil {
		t.Fatal(err)
	}
	guest.Do(t, "systemctl", "daemon-reload")
	settled(t, before["MainPID"])
	remembers(t, told)
}

// adapterPulled: the service says that the port went away, runs on, and attaches again by itself.
func adapterPulled(t *testing.T) {
	before := guest.Unit(t, service)
	plug := unplug(t)
	guest.UnitSays(t, service, "the fabric is out of reach; trying again")
	guest.UnitHas(t, service, "ActiveState=active", "MainPID="+before["MainPID"])
	plug()
	settled(t, "")
	guest.UnitHas(t, service, "MainPID="+before["MainPID"], "NRestarts="+before["NRestarts"])
	if !isSM(t) {
		t.Error("the port does not show a Subnet Manager after the adapter came back")
	}
}

// ruleTakenAway: without its udev rule the service says what to do, and attaches by itself once the rule is back.
func ruleTakenAway(t *testing.T) {
	const rule, away = "/usr/lib/udev/rules.d/60-portcullisd.rules", "/root/60-portcullisd.rules"
	pid := guest.Unit(t, service)["MainPID"]
	plug := unplug(t)
	guest.Do(t, "mv", rule, away)
	guest.Do(t, "udevadm", "control", "--reload")
	plug()
	guest.UnitSays(t, service, "the fabric is out of reach", "permission denied", "udev rule")
	guest.Do(t, "mv", away, rule)
	guest.Do(t, "udevadm", "control", "--reload")
	guest.Do(t, "udevadm", "trigger", "--subsystem-match=infiniband_mad")
	settled(t, "")
	guest.UnitHas(t, service, "MainPID="+pid)
	owned(t)
}

// diskFull fills the disk of the state: the service refuses what adds records, runs on, and takes them again once there is room.
// Steps that follow show that it lost nothing.
func diskFull(t *testing.T) {
	const ballast = state + "/ballast"
	before := guest.Unit(t, service)
	guest.Want(t, guest.Try(t, "dd", "if=/dev/zero", "of="+ballast, "bs=1M").All, "No space left on device")
	guest.UnitSays(t, service, "the store runs short", "store is full")
	refused := operator(t, "tenant", "create", "spare")
	if refused.Code == 0 {
		t.Fatal("the disk is full, and the service keeps another tenant")
	}
	guest.Want(t, refused.All, "store is full", "free ")
	guest.UnitHas(t, service, "ActiveState=active", "InvocationID="+before["InvocationID"])
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	guest.Eventually(t, guest.UnitLimit, "the service keeps a tenant once there is room", func() bool {
		return operator(t, "tenant", "create", "spare").Code == 0
	})
	guest.UnitHas(t, service, "ActiveState=active", "InvocationID="+before["InvocationID"])
	told = knows(t)
}
