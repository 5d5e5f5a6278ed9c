package sa

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/rmpp"
	"portcullis/fabricsm/sa/alias"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/inform"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/path"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sa/service"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// Config is the configuration of an Agent.
type Config struct {
	Subnet ib.Prefix
	Trust  trust.Options
	// Key is the SA_Key of a configuration without rotation. If it is zero, Source creates the key and its successors. With
	// neither, no requester is trusted. The keys from Source are saved, so the store must seal keys.
	Key     ib.SAKey
	Source  keys.Source
	Limiter limiter.Config
	Rules   portindex.Rules
	RMPP    rmpp.Config
	Groups  group.Config // Prefix, Guard, Limits and Trust are those of the agent
	Fixed   []group.Fixed
	Paths   path.Config // Prefix is the agent's
	// Services is as Groups; Names is the agent's, out of ServiceKeys.
	Services    service.Config
	ServiceKeys *trust.ServiceKeys // nil: no name needs one
	Aliases     alias.Config       // Untrusted, Guard and Limits are those of the agent
	Inform      inform.Config      // Prefix, Limits and Trust are those of the agent

	// Await leaves all requests unanswered until Configure is called. Before that call the groups of the configuration are
	// unknown, and hosts would see them as deleted.
	Await bool

	Policy Policy // default Strict

	// Tenant returns the tenant number of an end port, for the limiter; nil: all ports are one tenant.
	Tenant func(*portindex.EndPort) limiter.Tenant
}

// DefaultConfig is the strict one.
func DefaultConfig() Config {
	return Config{Subnet: ib.DefaultPrefix, Trust: trust.DefaultOptions(), Limiter: limiter.DefaultConfig()}
}

// Agent is subnet administration. It is for one goroutine.
type Agent struct {
	cfg     Config
	guard   *trust.Guard
	keys    *trust.Keys
	limiter *limiter.Limiter
	front   *Front
	work    *limiter.Work
	changes *limiter.Work // budgets for changes of registrations

	book     *portindex.Book
	ruling   int // how often Rules changed
	serving  bool
	settled  bool // Configure was called
	held     bool // nothing may be registered now
	quiet    bool // refusals are counted, and no subscriber is notified: see Aside
	nodes    *limiter.Nodes
	sessions *rmpp.Table[way]
	groups   *group.Registry
	services *service.Registry
	subs     *inform.Registry
	aliases  *alias.Registry
	fabric   registry.Fabric
	paths    *path.Engine
	wrongs   *trust.Violations
	shown    []trust.Violation // of Status
	drawAt   time.Time         // when an SA_Key is drawn again after that failed
	tellAt   time.Time         // when quietly counted refusals are reported; zero: there are none

	out      *Output   // of the call at hand
	now      time.Time // likewise
	refusals uint64    // number of the refusal at hand; 0: there is none
	rest     int       // steps that are left of the stride of the call
	worked   uint64    // steps that were taken, of all calls
	get      get       // at hand
	later    []*get    // that have not had their last stride
	laterAt  time.Time // when the next is due; zero: never
	stats    Stats
	idle     []*table // of tables that were sent
}

// Stats counts packets by their result.
type Stats struct {
	Packets  uint64
	Limited  uint64                    // dropped by the limiter
	Unserved uint64                    // received while the agent does not serve
	Answers  uint64                    // of one MAD
	Tables   uint64                    // begun
	Empty    uint64                    // of these, in one segment
	Refused  [trust.NumVerdicts]uint64 // requests that were dropped, by why
	Costly   uint64                    // dropped since the answer would have cost too much
	RMPP     rmpp.Stats
}

// New makes an agent that knows of no fabric yet.
func New(cfg Config) (*Agent, error) {
	shown, err := keysOf(cfg.Key)
	if err != nil {
		return nil, err
	}
	if cfg.Policy == nil {
		cfg.Policy = Strict{}
	}
	a := &Agent{cfg: cfg, keys: shown, book: portindex.Empty(cfg.Rules)}
	if a.guard, err = trust.NewGuard(cfg.Trust, cfg.Subnet, shown); err != nil {
		return nil, err
	}
	if a.limiter, err = limiter.New(cfg.Limiter); err != nil {
		return nil, err
	}
	if a.front, err = NewFront(cfg.Limiter); err != nil {
		return nil, err
	}
	if a.work, err = limiter.NewWork(cfg.Limiter.Work); err != nil {
		return nil, err
	}
	if a.changes, err = limiter.NewWork(limiter.WorkConfig{Node: cfg.Limiter.Changes}); err != nil {
		return nil, err
	}
	if a.sessions, err = rmpp.New[way](cfg.RMPP); err != nil {
		return nil, fmt.Errorf("subnet administration: %w", err)
	}
	a.forget()
	cfg.Paths.Prefix = cfg.Subnet
	if a.paths, err = path.New(cfg.Paths); err != nil {
		return nil, err
	}
	a.wrongs = trust.NewViolations(trust.Bounds{})
	return a, nil
}

// forget begins with nothing registered.
func (a *Agent) forget() {
	cfg := a.cfg
	limits := trust.NewLimits()
	cfg.Groups.Prefix, cfg.Groups.Guard, cfg.Groups.Limits, cfg.Groups.Trust = cfg.Subnet, a.guard, limits, cfg.Trust
	a.groups = group.New(cfg.Groups)
	s := &cfg.Services
	s.Prefix, s.Guard, s.Limits, s.Trust = cfg.Subnet, a.guard, limits, cfg.Trust
	s.Names = namesOf(cfg.ServiceKeys)
	a.services = service.New(*s)
	cfg.Inform.Prefix, cfg.Inform.Limits, cfg.Inform.Trust = cfg.Subnet, limits, cfg.Trust
	a.subs = inform.New(cfg.Inform)
	cfg.Aliases.Guard, cfg.Aliases.Limits = a.guard, limits
	cfg.Aliases.Untrusted = !cfg.Trust.Model || cfg.Trust.AliasesUntrusted
	a.aliases = alias.New(cfg.Aliases)
}

// Stats returns the packet counters.
func (a *Agent) Stats() Stats {
	s := a.stats
	s.RMPP = a.sessions.Stats()
	return s
}

// Front returns the limiter for all other classes, with the same configuration.
func (a *Agent) Front() *Front { return a.front }

// Next returns when Expire has work to do; zero: never.
func (a *Agent) Next() time.Time {
	next := a.tellAt
	due := [...]time.Time{a.sessions.Next(), a.keysDue(), {}, {}, a.laterAt}
	if a.serving {
		due[2], due[3] = a.services.Next(), a.subs.Next()
	}
	for _, t := range due {
		if next.IsZero() || !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	return next
}

// Expire does the work that is due.
func (a *Agent) Expire(now time.Time, out *Output) {
	a.out, a.now = out, now
	a.rest = stride / 2
	a.goOn(now)
	a.rest = stride / 2
	a.sessions.Expire(now, a)
	if !a.tellAt.IsZero() && !now.Before(a.tellAt) {
		a.tell(now)
	}
	if !a.serving {
		return // another manager may serve, and know more of the registrations
	}
	e := a.services.Expire(now)
	a.served(&e)
	reports := a.subs.Expire(now)
	a.informed(&reports)
	a.turnKeys(now)
}

// Sight is the data from which an Agent answers. It is immutable.
type Sight struct {
	book    *portindex.Book
	nodes   *limiter.Nodes
	limits  limiter.Config // of Front
	ruling  int            // that book was made by
	serving bool           // the view is that of a master that was settled once, or has early tables
	senders senders        // of Front, also while no node is served
}

// Sight makes one of a view. prev, which may be nil, is the one before. It may be called
// while the agent answers, by one goroutine at a time.
func (a *Agent) Sight(prev *Sight, v *sm.View) *Sight {
	if prev == nil {
		prev = &Sight{book: portindex.Empty(a.cfg.Rules), ruling: a.ruling}
	}
	if prev.ruling != a.ruling {
		prev = &Sight{book: portindex.Empty(a.cfg.Rules), ruling: a.ruling, serving: prev.serving}
	}
	s := &Sight{book: prev.book, limits: a.cfg.Limiter, ruling: a.ruling, serving: serves(prev, v), senders: sendersOf(v)}
	if s.serving {
		s.book = portindex.New(prev.book, v)
		s.nodes = a.number(s.book)
	}
	return s
}

// serves reports whether hosts can be answered from a view.
func serves(prev *Sight, v *sm.View) bool {
	return v.State == ib.SMMaster && (v.Early != nil || v.Tables != nil && (prev.serving || v.Settled))
}

// SightAlone makes a sight for a Front that stands alone.
func SightAlone(v *sm.View, limits limiter.Config) *Sight {
	return &Sight{limits: limits, senders: sendersOf(v)}
}

// number assigns LIDs to nodes and tenants. A tenant beyond the maximum number shares with the fabric itself.
func (a *Agent) number(b *portindex.Book) *limiter.Nodes {
	n := &limiter.Nodes{}
	for e := range b.All() {
		var t limiter.Tenant
		if a.cfg.Tenant != nil {
			t = a.cfg.Tenant(e)
		}
		if n.Add(e.LID, e.LMC, t) != nil {
			_ = n.Add(e.LID, e.LMC, 0)
		}
	}
	return n
}

// Serving reports whether hosts are answered from it.
func (s *Sight) Serving() bool { return s.serving }

// Look answers from another sight from now on.
func (a *Agent) Look(now time.Time, s *Sight, out *Output) {
	a.out = out
	serving := s.serving && (a.settled || !a.cfg.Await)
	began := serving && !a.serving
	a.book, a.serving = s.book, serving
	if !serving {
		return
	}
	a.nodes = s.nodes
	a.limiter.SetNodes(s.nodes)
	a.turnKeys(now)
	a.fabric = registry.Of(s.book)
	a.aliases.Follow(a.fabric)
	_, reports := a.subs.Follow(now, a.fabric)
	a.informed(&reports)
	e, of := a.groups.Follow(a.fabric), a.services.Follow(a.fabric)
	a.served(&of)
	if began {
		// The Subnet Manager gets the complete list of groups instead of the changes.
		fixed := a.groups.SetFixed(a.cfg.Fixed)
		a.grouped(now, &e)
		a.grouped(now, &fixed)
		a.distrust()
		a.out.Tell = append(a.out.Tell[:0], a.groups.Input(), a.aliases.Input())
		taken := a.aliases.SetInventory(a.cfg.Aliases.Inventory)
		a.given(&taken)
		return
	}
	a.grouped(now, &e)
}

// maxQP is the highest number of a queue pair: it has 24 bits.
const maxQP = 1<<24 - 1

// Take takes a packet of class 0x03 that came.
func (a *Agent) Take(now time.Time, p *transport.Packet, out *Output) {
	a.out, a.now, a.rest = out, now, stride
	a.stats.Packets++
	m := &p.MAD
	if p.Undelivered || p.QP > maxQP {
		return
	}
	waits := a.subs.Waits(p.LID, m)
	if a.limiter.Admit(now, limiter.Packet{LID: p.LID, Class: m.Class(), Method: m.Method(), Length: len(m), Expected: waits}) != limiter.Pass {
		a.stats.Limited++
		a.tellLater(now)
		return
	}
	if !a.serving {
		a.stats.Unserved++
		return
	}
	if waits {
		e := a.subs.Take(now, p.LID, m)
		a.informed(&e)
		return
	}
	from := trust.Source{Port: a.book.ByLID(p.LID)}
	from.Router = from.Port != nil && from.Port.Type == ib.NodeRouter
	// An ACK, STOP or ABORT, and an answer, belong to an earlier request and are judged by it.
	if m.IsResponse() || answersData(m) {
		a.continues(now, p, from)
		return
	}
	packet := trust.Packet{MAD: m, LID: p.LID, QP: p.QP}
	if p.GRH.Present {
		packet.GRH, packet.SGID = true, p.GRH.GID
	}
	asker, verdict := a.guard.Check(now, &packet, from)
	if verdict == trust.OK && asker.As != from.Port.GUID && a.book.ByGUID(asker.As) != from.Port {
		verdict = trust.SpoofedSGID // it shows an alias of another port
	}
	if !a.cfg.Policy.Accepts(verdict) {
		a.refuse(now, &trust.Dropped{
			Verdict: verdict, Who: asker, Port: from.Port, Attr: m.Attr(), Method: m.Method(), SGID: packet.SGID,
		})
		return
	}
	asker.Trusted = asker.Trusted || verdict != trust.OK // a policy accepts another key
	if !m.RMPPFlags().Has(mad.RMPPActive) {
		a.ask(now, p, &asker, m, m.SAData())
		return
	}
	if what, msg := a.sessions.Take(now, m, a.party(p, from.Port), a); what == rmpp.Whole {
		a.ask(now, p, &asker, msg.Head, msg.Data)
	}
}

// answersData reports whether an RMPP packet requests nothing by itself.
func answersData(m *mad.MAD) bool {
	switch m.RMPPType() {
	case mad.RMPPAck, mad.RMPPStop, mad.RMPPAbort:
		return m.RMPPFlags().Has(mad.RMPPActive)
	default:
		return false
	}
}

// continues takes a packet that belongs to an earlier request.
func (a *Agent) continues(now time.Time, p *transport.Packet, from trust.Source) {
	if from.Port == nil || p.MAD.BaseVersion() != 1 || p.MAD.ClassVersion() != mad.SAClassVersion {
		return
	}
	a.sessions.Take(now, &p.MAD, a.party(p, from.Port), a)
}

func (a *Agent) party(p *transport.Packet, e *portindex.EndPort) rmpp.Party[way] {
	return rmpp.Party[way]{LID: p.LID, QP: p.QP, Port: e.LID, Back: wayOf(p)}
}

// reply answers with one MAD and returns its data field, which the caller fills.
func (a *Agent) reply(p *transport.Packet, request *mad.MAD, s mad.Status) *mad.MAD {
	a.stats.Answers++
	to := slot(&a.out.Send)
	w := wayOf(p)
	w.address(to)
	answer(&to.MAD, request, s)
	return &to.MAD
}

// Send implements rmpp.Sink.
func (a *Agent) Send(w way, m *mad.MAD) {
	p := slot(&a.out.Send)
	w.address(p)
	p.MAD = *m
}

// Ended implements rmpp.Sink.
func (a *Agent) Ended(e rmpp.End) {
	if t, ok := e.Source.(*table); ok {
		a.release(t)
	}
}

// Restore replaces the registrations and the SA_Key with the saved ones, from before a restart or from while another
// manager was master. Facts of other kinds are ignored.
func (a *Agent) Restore(now time.Time, facts []sm.Fact, out *Output) error {
	a.out = out
	if err := a.restoreKeys(facts); err != nil {
		return err
	}
	a.forget()
	subs, given := a.subs.Restore(facts), a.aliases.Restore(facts)
	a.informed(&subs)
	a.given(&given)
	e, of := a.groups.Restore(facts), a.services.Restore(facts)
	a.grouped(now, &e)
	a.served(&of)
	return nil
}

// Hold makes the agent answer registration requests with StatusBusy, while earlier registrations are not durable yet.
func (a *Agent) Hold(on bool) { a.held = on }
