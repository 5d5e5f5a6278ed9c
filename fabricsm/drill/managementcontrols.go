package drill

import (
	"time"

	"portcullis/fabricsm/drill/weak"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
)

// Controls of subnet management: keys, other subnet managers, traps.
const (
	MKey             Control = "m_key"
	MKeyPerPort      Control = "m_key_per_port"
	RefusersClosed   Control = "refusers_closed"
	MKeyProtection   Control = "m_key_protection"
	LeaseInfinite    Control = "lease_infinite"
	SMPFirewall      Control = "smp_firewall"
	SMKey            Control = "sm_key"
	SMKeySecret      Control = "sm_key_secret"
	AllowedSM        Control = "allowed_sm"
	TrapVerification Control = "trap_verification"
	TrapRateLimit    Control = "trap_rate_limit"
	RandomTIDs       Control = "random_tids"
	KeyStrength      Control = "key_strength"
	KeyJournal       Control = "key_journal"
	Rotation         Control = "rotation"
	Escrow           Control = "escrow"
	GuessQuarantine  Control = "guess_quarantine"
	GuestsWithoutQP0 Control = "guests_without_qp0"
	KeyRetirement    Control = "key_retirement"
	KeyLeases        Control = "key_leases"
	KnownNeighbour   Control = "known_neighbour"
	LeaseReads       Control = "lease_reads"
	LapseReplaced    Control = "lapse_replaced"
)

func managementControls() []Carried {
	return []Carried{
		{
			MKey, "every device has an M_Key, and obeys no sender without it",
			[]string{"T29", "T30", "T32", "T35", "T44", "T45", "T49"},
			func(o *SiteOptions) { o.NoKeys = true },
		},
		{
			MKeyPerPort, "no two devices have the same M_Key",
			[]string{"T29", "T36", "T47", "T51"},
			func(o *SiteOptions) { o.SM.MKey.Source = oneKey{o.SM.MKey.Source} },
		},
		{
			RefusersClosed, "the switch port of an adapter that works and refuses its M_Key is closed",
			[]string{"T37"},
			func(o *SiteOptions) { o.SM.Controls.Ports = weak.OpenToRefusers{} },
		},
		{
			MKeyProtection, "protection level 2: without its M_Key a device answers no sender, not even a Get",
			[]string{"T30"},
			func(o *SiteOptions) { o.SM.MKey.Protection = 1 },
		},
		{
			LeaseInfinite, "protection by M_Keys never lapses",
			[]string{"T32", "T33"},
			func(o *SiteOptions) { o.SM.MKey.Lease = 2 },
		},
		{
			SMPFirewall, "adapters keep subnet management from their hosts, which cannot change that",
			[]string{"T29", "T32", "T37", "T39"},
			func(o *SiteOptions) { o.Firewalled = nil },
		},
		{
			SMKey, "only a subnet manager that shows the SM_Key is believed",
			[]string{"T31", "T34"},
			func(o *SiteOptions) { o.SM.Controls.Managers = weak.AnySMKey{} },
		},
		{
			SMKeySecret, "the SM_Key is sent only to where another subnet manager is allowed",
			[]string{"T35"},
			func(o *SiteOptions) { o.SM.Controls.Managers = weak.ShowsSMKey{} },
		},
		{
			AllowedSM, "only a subnet manager at a place where one is allowed is believed",
			[]string{"T31", "T34"},
			func(o *SiteOptions) { o.SM.Election.Allowed, o.SM.Controls.Managers = nil, weak.AnySMPlace{} },
		},
		{
			TrapVerification, "no trap is a reason to act before the device that it names was asked",
			[]string{"T40"},
			func(o *SiteOptions) {
				o.SM.Controls.Traps = weak.TrustsTraps{}
				o.SM.Health.Noisy = health.Rule{Count: 600, Window: time.Minute, Action: health.Isolate}
			},
		},
		{
			TrapRateLimit, "who sends traps in which there is nothing is asked ever more rarely",
			[]string{"T40"},
			func(o *SiteOptions) { o.SM.Controls.Traps = weak.EveryTrap{} },
		},
		{
			RandomTIDs, "transaction ids of requests cannot be guessed",
			[]string{"T41"},
			func(o *SiteOptions) { o.CountedTIDs = true },
		},
		{
			KeyStrength, "keys cannot be guessed from what is public",
			[]string{"T45"},
			func(o *SiteOptions) { o.SM.MKey.Source = publicKey{} },
		},
		{
			KeyJournal, "both keys are saved before a device gets a new one",
			[]string{"T48"},
			func(o *SiteOptions) {
				o.Forgets = func(f *sm.Fact) bool { return f.Key != nil && !f.Key.Pending.IsZero() }
			},
		},
		{
			GuessQuarantine, "who is proven to try keys is switched off, for ever longer",
			[]string{"T44"},
			func(o *SiteOptions) {
				o.SM.Health.Guessing = health.Rule{Count: 10, Window: 10 * time.Minute, Action: health.Report}
			},
		},
		{
			Rotation, "keys change from time to time",
			[]string{"T48", "T52", "T60"},
			func(o *SiteOptions) { o.SM.MKey.Rotation = keys.RotationConfig{} },
		},
		{
			Escrow, "an escrow kit returns all keys when the store is lost",
			[]string{"T50"},
			func(o *SiteOptions) { o.NoEscrow = true },
		},
		{
			GuestsWithoutQP0, "virtual functions have no queue pair 0",
			[]string{"T43"},
			func(o *SiteOptions) { o.GuestSMPs = true },
		},
		{
			KeyRetirement, "the key of a device that left is destroyed",
			[]string{"T47"},
			func(o *SiteOptions) { o.SM.Controls.Keys = weak.KeepsRetired{} },
		},
		{
			KeyLeases, "a key that was lent to a tool changes when its time is over",
			[]string{"T51"},
			func(o *SiteOptions) { o.SM.Controls.Keys = weak.EndlessLeases{} },
		},
		{
			KnownNeighbour, "behind the manager's own cable only the M_Key of the switch that is known to be there is shown",
			[]string{"T36"},
			func(o *SiteOptions) { o.SM.Controls.Keys = weak.AnyNeighbour{} },
		},
		{
			LeaseReads, "where M_Keys have a lease, each device is read three times in it, before all other work, and asked again while it is silent",
			[]string{"T158"},
			func(o *SiteOptions) { o.SM.Controls.Keys = weak.LateLeases{} },
		},
		{
			LapseReplaced, "an M_Key that each host could read, since its lease ran out, is replaced at once",
			[]string{"T159"},
			func(o *SiteOptions) { o.SM.Controls.Keys = weak.KeepsLapsed{} },
		},
	}
}

// publicKey is a source that makes keys of GUIDs, which are public.
type publicKey struct{}

// Make implements keys.Source.
func (publicKey) Make(_ keys.Kind, guid ib.GUID, epoch keys.Epoch, now time.Time) (keys.Held, error) {
	return keys.Held{Key: keys.New(uint64(guid) + uint64(epoch)), Epoch: epoch, Since: now}, nil
}

// oneKey is a source that returns the same key for all devices.
type oneKey struct{ keys.Source }

// Make implements keys.Source.
func (s oneKey) Make(kind keys.Kind, _ ib.GUID, epoch keys.Epoch, now time.Time) (keys.Held, error) {
	const everybody ib.GUID = 1
	return s.Source.Make(kind, everybody, epoch, now)
}
