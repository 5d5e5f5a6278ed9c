package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"portcullis/agent/hca"
	reg "portcullis/agent/hca/register"
	"portcullis/agent/hca/smpprobe"
	"portcullis/agent/hca/sysfs"
	"portcullis/agent/lock"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/tpm"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig/profile"
)

// errOpened ends a run whose goal was that.
var errOpened = errors.New("the adapters that leave are open")

// maxRounds is how many orders are asked for in one run before it is given up: to open
// adapters that shall draw a challenge, and after each refusal of a file for one that
// is bound to less.
const maxRounds = 6

// lockedAdapters holds the facts that were read from adapters while they were open, and the proofs of their locks. A locked
// adapter reports nothing about itself. The file is of one boot and contains no key.
type lockedAdapters struct {
	BootID string       `json:"boot_id"`
	HCAs   []attest.HCA `json:"hcas"`
}

// lockAdapters has the adapters locked as the service orders.
// draw has each adapter draw a challenge, for files that are bound to it.
func (r *run) lockAdapters(ctx context.Context, ticket string, draw bool) error {
	if r.rounds++; r.rounds > maxRounds {
		return failf(ClassLock, "portcullis host show "+r.config.Host+" shows what the service misses",
			"%d orders to lock adapters were carried out, but the service still wants them locked", maxRounds)
	}
	s, err := Collect(ctx, r.config, r.version, r.now())
	if err != nil {
		return err
	}
	var all []*openAdapter
	defer func() {
		for _, a := range all {
			a.drop(ctx, r.log)
			a.reached.Close()
		}
	}()
	for i := range s.HCAs {
		a, err := r.openAdapter(ctx, &s.HCAs[i])
		if errors.Is(err, sysfs.ErrClaimed) {
			return fail(ClassLock, "wait for the other process to end, or find it: lsof /sys/bus/pci/devices/ADDRESS/", err)
		}
		if err != nil {
			return fail(ClassLock, "the kernel's fwctl is the way to lock adapters: Linux 6.15 and the module mlx5_fwctl", err)
		}
		all = append(all, a)
		if draw {
			a.draw(ctx, r.log, r.loosened[a.facts.NodeGUID])
		}
	}
	r.say("asking for orders to lock adapters")
	c := r.client.WithToken(ticket)
	defer c.Close()
	orders, err := c.Locks().Orders(ctx, requestOf(ctx, all))
	if err != nil {
		return err
	}
	p, err := profileOf(orders)
	if err != nil {
		return failf(ClassLock, "update the agent, or the service", "profile of settings from the service: %w", err)
	}
	report := v1.LockReport{}
	err = r.obey(ctx, s.BootID, all, orders.Orders, p, &report)
	r.report(ctx, orders.Report, report)
	return err
}

// reportTime bounds how long a report may hold up what comes after it.
const reportTime = 10 * time.Second

// report says what became of orders. That it is not heard changes nothing.
func (r *run) report(ctx context.Context, ticket string, in v1.LockReport) {
	if ticket == "" || len(in.Adapters) == 0 {
		return // a service of before, or nothing was begun
	}
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	c := r.client.WithToken(ticket)
	defer c.Close()
	if err := c.Locks().Report(ctx, in); err != nil {
		r.log.Warn("the service was not informed about the locks of adapters", "error", err)
	}
}

// outcome says what became of an order.
func outcome(node ib.GUID, found []attest.Item, err error) v1.LockOutcome {
	o := v1.LockOutcome{NodeGUID: node, Code: v1.LockDone}
	if err != nil {
		o.Code = strings.TrimPrefix(string(lock.CodeOf(err)), "lock.")
		o.Detail = clipped(err.Error())
	}
	for i := range found {
		it := &found[i]
		if it.Supported == attest.Yes && it.Current != "" && len(o.Found) < maxFound {
			o.Found = append(o.Found, v1.LockFound{
				Class: it.Class, Index: it.Index, Port: it.Port, Host: it.Host, Function: it.Function, Current: it.Current, Next: it.Next,
			})
		}
	}
	return o
}

// Bounds of the report about an adapter.
const (
	maxFound  = 256
	maxDetail = 512
)

func clipped(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) > maxDetail {
		return strings.ToValidUTF8(s[:maxDetail], "")
	}
	return s
}

// lockFirst has the adapters locked as long as the service wants it, and attests
// again. On error nothing is left in the TPM.
func (r *run) lockFirst(ctx context.Context, dev *tpm.TPM, keys *tpm.Keys, a *accepted) (_ *accepted, err error) {
	for a.result.LockTicket != "" {
		r.discard(ctx, a.pair)
		if err := r.lockAdapters(ctx, a.result.LockTicket, a.result.DrawChallenges); err != nil {
			return nil, err
		}
		if r.goal == Opened && r.opened > 0 {
			return nil, errOpened
		}
		if a, err = r.attempt(ctx, dev, keys); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// profileOf reads the site's profile.
func profileOf(o *v1.LockOrders) (*profile.Profile, error) {
	if o.Profile == "" {
		return profile.Default(), nil
	}
	return profile.Load([]byte(o.Profile))
}

// obey does what was ordered, keeps what was proven of each adapter, and puts what
// became of it into report.
func (r *run) obey(ctx context.Context, boot string, all []*openAdapter, orders []v1.LockOrder, p *profile.Profile, report *v1.LockReport) error {
	kept := lockedAdapters{BootID: boot}
	for _, a := range all {
		o := orderFor(orders, a.facts.NodeGUID)
		if o == nil {
			return failf(ClassLock, "compare the inventory with the host", "the service has no order for adapter %s, node GUID %v", a.Name, a.facts.NodeGUID)
		}
		if o.Action == v1.ActionUnlock {
			if err := r.open(ctx, a, o, report); err != nil {
				return err
			}
			continue
		}
		if o.Action == v1.ActionOpen {
			if err := r.openFirst(ctx, a, o, report); err != nil {
				return err
			}
			continue
		}
		r.say("locking adapter " + a.Name)
		result, err := a.Lock(ctx, &lock.Order{
			Base: a.Base, Profile: p, File: o.File, Challenge: a.drawn, Lock: keyOf(o.Lock), Held: keysOf(o.Held),
		})
		report.Adapters = append(report.Adapters, outcome(a.facts.NodeGUID, result.Found, err))
		if o.File != nil && r.loosen(a, err) {
			continue
		}
		if err != nil {
			return lockFailed(err)
		}
		kept.HCAs = append(kept.HCAs, a.statement(result))
		if err := r.state.save(lockedFile, kept); err != nil {
			return fail(ClassOther, roomHint, err)
		}
		r.log.Info("adapter locked and proven", "adapter", a.Name, "node_guid", a.facts.NodeGUID, "epoch", o.Lock.Epoch, "method", result.Lock.Method)
	}
	return nil
}

// open opens an adapter that leaves. The host is not admitted with it.
func (r *run) open(ctx context.Context, a *openAdapter, o *v1.LockOrder, report *v1.LockReport) error {
	epoch, err := a.Unlock(ctx, keysOf(o.Held))
	report.Adapters = append(report.Adapters, outcome(a.facts.NodeGUID, nil, err))
	if err != nil {
		return lockFailed(err)
	}
	r.log.Info("adapter opened", "adapter", a.Name, "node_guid", a.facts.NodeGUID, "epoch", epoch)
	r.opened++
	if r.goal == Opened {
		return nil
	}
	return failf(ClassLock, "remove the adapter, or cancel the decision: portcullis lock retain "+a.facts.NodeGUID.String(),
		"adapter %s, node GUID %v, leaves by decision of the service, and was opened", a.Name, a.facts.NodeGUID)
}

// openFirst opens an adapter that is locked, so that it can draw a challenge for the
// order that is asked for next.
func (r *run) openFirst(ctx context.Context, a *openAdapter, o *v1.LockOrder, report *v1.LockReport) error {
	r.say("opening adapter " + a.Name + ", so that it draws a challenge")
	epoch, err := a.Unlock(ctx, keysOf(o.Held))
	report.Adapters = append(report.Adapters, outcome(a.facts.NodeGUID, nil, err))
	if err != nil {
		return lockFailed(err)
	}
	r.log.Info("adapter opened, so that it draws a challenge", "adapter", a.Name, "node_guid", a.facts.NodeGUID, "epoch", epoch)
	return nil
}

func lockFailed(err error) error {
	hint := ""
	if e, ok := errors.AsType[*lock.Error](err); ok {
		hint = e.Hint
	}
	return failf(ClassLock, hint, "%s: %w", lock.CodeOf(err), err)
}

func orderFor(orders []v1.LockOrder, node ib.GUID) *v1.LockOrder {
	for i := range orders {
		if orders[i].NodeGUID == node {
			return &orders[i]
		}
	}
	return nil
}

func keyOf(k v1.LockKey) lock.Key { return lock.Key{Epoch: uint64(k.Epoch), Key: k.Key.Key} }

func keysOf(keys []v1.LockKey) (out []lock.Key) {
	for _, k := range keys {
		out = append(out, keyOf(k))
	}
	return out
}

// openAdapter is an adapter that is being locked.
type openAdapter struct {
	*lock.Adapter
	reached *hca.Reached
	facts   attest.HCA      // as last read while it was open
	drawn   *lock.Challenge // that is out
	offered looser          // what a file for it can be bound to
}

// openAdapter opens one, and says how it is driven.
func (r *run) openAdapter(ctx context.Context, h *attest.HCA) (*openAdapter, error) {
	reached, err := hca.Reach(ctx, r.config.Ways(), h.NodeGUID)
	if err != nil {
		return nil, err
	}
	a := &openAdapter{reached: reached, facts: *h}
	a.Adapter = &lock.Adapter{
		Name: reached.Name, Base: h.NodeGUID, MAC: macOf(h.BaseMAC), PSID: h.PSID, Access: reached,
		Reset: func(ctx context.Context) error { return r.reset(ctx, reached) },
		Probe: func(ctx context.Context, port ib.PortNum) (attest.Firewall, error) {
			return r.probe(ctx, reached, port)
		},
		Look: func(ctx context.Context) error { return r.look(ctx, a) },
		Wait: wait,
	}
	for _, p := range h.Ports {
		if p.LinkLayer == attest.LinkInfiniBand {
			a.Ports = append(a.Ports, p.Num)
		}
	}
	return a, nil
}

func wait(ctx context.Context, d time.Duration) error {
	if !sleep(ctx, d) {
		return ctx.Err()
	}
	return nil
}

// look reads what the adapter says of itself while it is open.
func (r *run) look(ctx context.Context, a *openAdapter) error {
	s, err := Collect(ctx, r.config, r.version, r.now())
	if err != nil {
		return err
	}
	for _, h := range s.HCAs {
		if h.NodeGUID == a.facts.NodeGUID {
			a.facts = h
			return nil
		}
	}
	return fmt.Errorf("node GUID %v is gone", a.facts.NodeGUID)
}

// resetTime is how long firmware may take to come back.
const resetTime = 2 * time.Minute

// reset has the driver reset the firmware, and waits until it answers.
func (r *run) reset(ctx context.Context, a *hca.Reached) error {
	const full, syncDriver = reg.PCIeLink, 1
	if _, err := hca.Write(ctx, a, reg.MFRL{Trigger: full, Sync: syncDriver}); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, resetTime)
	defer cancel()
	for pause := 200 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := a.Reopen(limited, r.config.Ways())
		if err == nil {
			if _, err = hca.Read(limited, a, reg.MGIR{}); err == nil {
				return nil
			}
		}
		if !sleep(limited, pause) {
			return fmt.Errorf("the firmware does not come back in %v: %w", resetTime, err)
		}
	}
}

// probe tries to send a subnet management packet. A simulated adapter has no
// device to send by; there its own word for it counts, which proves nothing of any
// real one.
func (r *run) probe(ctx context.Context, a *hca.Reached, port ib.PortNum) (attest.Firewall, error) {
	if strings.HasPrefix(r.config.FWCTL, "unix:") {
		v, ok := a.Opened.(hca.Vports)
		if !ok {
			return attest.FirewallUnknown, errors.New("the simulated adapter has no ports")
		}
		c, err := v.VportContext(ctx, uint8(port))
		switch {
		case err != nil:
			return attest.FirewallUnknown, err
		case c.HasSMI:
			return attest.FirewallOpen, nil
		default:
			return attest.FirewallBlocks, nil
		}
	}
	node := a.UMAD[port]
	if node == "" {
		return attest.FirewallUnknown, errors.New("the kernel has no device for MADs of this port: load ib_umad")
	}
	return smpprobe.Probe(ctx, filepath.Join("/dev/infiniband", node))
}

// statement returns the adapter in the form of statements, once it is locked.
func (a *openAdapter) statement(result *lock.Result) attest.HCA {
	h := a.facts
	h.Lock = result.Lock
	h.Ports = append([]attest.Port(nil), h.Ports...)
	for i := range h.Ports {
		if f, ok := result.Firewall[h.Ports[i].Num]; ok {
			h.Ports[i].Firewall = f
		}
	}
	return h
}

// recallLocks puts in place of locked adapters what was read and proven of them in
// this boot. One that is no longer locked is stated as it is.
func (r *run) recallLocks(s *attest.Statement) error {
	var kept lockedAdapters
	if err := r.state.load(lockedFile, &kept); err != nil {
		r.log.Warn("what was proven of locks is lost; the adapters will be locked again", "error", err)
		return nil
	}
	if kept.BootID != s.BootID {
		return nil
	}
	for i := range s.HCAs {
		h := &s.HCAs[i]
		for _, k := range kept.HCAs {
			if k.NodeGUID == h.NodeGUID && k.Lock.MLOCK == h.Lock.MLOCK && h.Lock.MLOCK == attest.MLOCKLocked {
				*h = k
			}
		}
	}
	if _, err := s.Encode(); err != nil {
		return fail(ClassHCA, "", err)
	}
	return nil
}

// requestOf describes the adapters in a lock request, as far as they report their facts now.
func requestOf(ctx context.Context, all []*openAdapter) (in v1.LockRequest) {
	for _, a := range all {
		one := v1.LockAdapter{NodeGUID: a.facts.NodeGUID, PSID: a.PSID, Ports: len(a.Ports)}
		a.offer(&one)
		for _, s := range a.Settings(ctx, profile.Default()).Readings {
			set := v1.LockSetting{Address: uint32(s.Address)}
			if s.Support != profile.SupportUnknown {
				known := s.Support == profile.Supported
				set.Supported = &known
			}
			if s.Default.State == profile.Read {
				set.Default = s.Default.Item.Append(nil)
			}
			one.Settings = append(one.Settings, set)
		}
		in.Adapters = append(in.Adapters, one)
	}
	return in
}
