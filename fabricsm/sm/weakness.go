package sm

// Weakness switches controls off, each by itself, so that drills can show what it
// is for and that they would notice its absence. No service sets any of it.
type Weakness struct {
	FullDefault bool // all hosts are full members of the default partition
	MovesKeys   bool // P_Key tables are kept without gaps, so keys change their index
	AnyCapacity bool // tables are assumed to have room for 64 P_Keys
	HCAFirst    bool // a P_Key is taken from the HCA first, from its switch port after that
	NoRawFilter bool // switch ports let raw packets pass
	NewestWins  bool // a GUID is accepted where it was shown last, not where it was first
	AnySMKey    bool // other subnet managers are trusted with any SM_Key, or none
	AnySMPlace  bool // commands are obeyed from anywhere, if they show the SM_Key
	TellsSMKey  bool // every answer to a Get of SMInfo shows the SM_Key
	TrustsTraps bool // the named sender of a trap is taken for the real one
	EveryTrap   bool // each trap has its switch read again at once
	TellsAll    bool // each report is logged, however many there were

	OpenToRefusers bool // an adapter that refuses its M_Key keeps its switch port

	EndlessLeases bool // a key that is lent stays as it is when its time is over
	LateLeases    bool // leases are kept by the audit alone, after other work, and what is silent is asked ever more rarely
	KeepsLapsed   bool // a key that each host could read, since its lease ran out, stays as it is
	KeepsRetired  bool // the key of a device that left permanently is kept
	AnyNeighbour  bool // the device behind our own port is taken for the switch it says it is
}
