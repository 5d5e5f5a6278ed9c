package weak

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/sm/controls"
)

// AnySMKey trusts other Subnet Managers with any SM_Key, or none.
type AnySMKey struct{ controls.Strict }

// AcceptsKey implements controls.Managers.
func (AnySMKey) AcceptsKey(_, _ ib.SMKey) bool { return true }

// AnySMPlace obeys commands from any place that show the SM_Key.
type AnySMPlace struct{ controls.Strict }

// Obeys implements controls.Managers.
func (AnySMPlace) Obeys(bool) bool { return true }

// ShowsSMKey shows the SM_Key in every answer to a Get of SMInfo.
type ShowsSMKey struct{ controls.Strict }

// ShowsKey implements controls.Managers.
func (ShowsSMKey) ShowsKey(bool) bool { return true }

// TrustsTraps takes the named sender of a trap for the real one.
type TrustsTraps struct{ controls.Strict }

// ProvesSender implements controls.Traps.
func (TrustsTraps) ProvesSender() bool { return true }

// EveryTrap has each trap cause a look at its switch at once.
type EveryTrap struct{ controls.Strict }

// Waits implements controls.Traps.
func (EveryTrap) Waits() bool { return false }

// LogsAll logs each report, however many there were.
type LogsAll struct{ controls.Strict }

// Suppresses implements controls.Traps.
func (LogsAll) Suppresses() bool { return false }

// NoRawFilter lets raw packets pass switch ports.
type NoRawFilter struct{ controls.Strict }

// FiltersRaw implements controls.Ports.
func (NoRawFilter) FiltersRaw() bool { return false }

// NewestWins accepts a GUID where it was shown last, not where it was first.
type NewestWins struct{ controls.Strict }

// Contests implements controls.Ports.
func (NewestWins) Contests() bool { return false }

// OpenToRefusers leaves the switch port of an adapter that refuses its M_Key open.
type OpenToRefusers struct{ controls.Strict }

// Closes implements controls.Ports.
func (OpenToRefusers) Closes() bool { return false }

// FullDefault makes all hosts full members of the default partition.
type FullDefault struct{ controls.Strict }

// Default implements partition.Controls.
func (FullDefault) Default(bool) ib.PKey { return ib.DefaultPKeyFull }

// MovesKeys keeps P_Key tables without gaps, so keys change their index.
type MovesKeys struct{ controls.Strict }

// Keep implements partition.Controls.
func (MovesKeys) Keep(partition.Current) partition.Current { return partition.Current{} }

// AnyCapacity assumes that every table has room for 64 P_Keys.
type AnyCapacity struct{ controls.Strict }

// Capacity implements partition.Controls.
func (AnyCapacity) Capacity(int) int { return 64 }

// AdapterFirst removes a P_Key from the adapter before it removes it from the switch port.
type AdapterFirst struct{ controls.Strict }

// SwitchFirst implements controls.Partitions.
func (AdapterFirst) SwitchFirst() bool { return false }

// EndlessLeases leaves a key that was lent as it is when its time is over.
type EndlessLeases struct{ controls.Strict }

// EndsLeases implements controls.Keys.
func (EndlessLeases) EndsLeases() bool { return false }

// LateLeases keeps leases of protection by the audit alone, after other work, and asks silent ports ever more rarely.
type LateLeases struct{ controls.Strict }

// KeepsLeasesFirst implements controls.Keys.
func (LateLeases) KeepsLeasesFirst() bool { return false }

// KeepsLapsed leaves a key as it is that each host could read.
type KeepsLapsed struct{ controls.Strict }

// ReplacesLapsed implements controls.Keys.
func (KeepsLapsed) ReplacesLapsed() bool { return false }

// KeepsRetired keeps the key of a device that left permanently.
type KeepsRetired struct{ controls.Strict }

// Retires implements controls.Keys.
func (KeepsRetired) Retires() bool { return false }

// AnyNeighbour takes the device behind our own port for the switch that it claims to be.
type AnyNeighbour struct{ controls.Strict }

// ProvesNeighbour implements controls.Keys.
func (AnyNeighbour) ProvesNeighbour() bool { return false }
