// Package verify compares the fabric with a specification, one link end at a time, and rules on each before it is granted
// anything.
//
// # Use by the Subnet Manager
//
// The core owns one [Judge] beside its own state. It never passes it text and never waits for it. In this order:
//
//  1. Start. [New] with the compiled revision that was activated last and the mode
//     that was in force; both are facts of the store, so a restart under Enforce is
//     under Enforce before the first packet. Without a revision there is no judge,
//     and every rule below is skipped.
//  2. Own place. When the first NodeInfo beyond our own port came (the switch we are
//     cabled to, with its LocalPortNum), [Judge.Attach] with that switch port as At
//     and our own adapter as the device seen; [Judge.AttachSwitch] when we run on a
//     switch. If it is not verified, nothing else can be.
//  3. Before a probe: [Judge.Before] where the core decides to send a packet through
//     a switch port (workProbe, and before any SMP whose directed route goes beyond
//     the port). PlanHold and PlanLeave: nothing is sent. PlanDisable: the port's
//     physical state is set to disabled. PlanProbe and PlanDark: NodeInfo is asked.
//  4. The answer: [Judge.Link] with At and the fields of NodeInfo, first thing in
//     gotNodeInfo, before the node is entered, named, linked, counted as the twin of
//     a node, or granted an M_Key, LID, route or partition. Admit: go on. Hold: drop
//     the answer, keep the port in Init, ask nothing more behind it. Leave: as Hold,
//     and the link state is reported. Disable: switch this port off; the node is not
//     entered, and a node of the same GUID that is verified elsewhere is not
//     touched: no contest, no second look, its LID and tables stay (T17). Keep: what
//     was in force stays, nothing new is granted.
//  5. Every later NodeInfo of a known node, rotation and traps 144 included, goes
//     through Link, too: that is how a GUID that changes without a link change is
//     found (T22). An equal fact changes nothing and allocates nothing.
//  6. Link down, or a port that another reason closed: [Judge.Down]. A switch that
//     leaves the fabric: [Judge.Forget].
//  7. After each of these, [Judge.Changes]. It has one entry for every port whose
//     state or verdict changed, the reported one included; others can be those
//     of a swap, and those behind a switch that became verified or is not any more.
//     A port that came to StateDisabled is to be switched off and, when it was linked,
//     unlinked; StateHeld from StateVerified grants nothing new; StateVerified from
//     StateHeld means: probe it now; StateReleased means: enable and probe it. Each is one event, with expected and seen.
//  8. Grants. A membership, a key and a LID may be bound to a place only if
//     [Judge.IsVerified] or [Judge.IsSteady] says so; a key in every mode, the others
//     under Enforce, since the milder modes only report; a place without a verified link is
//     quarantined as one without an admission is. In modes below Enforce the core may
//     go on to route nodes that are admitted but not verified, as it did without a
//     specification.
//  9. A new revision: [Judge.Activate] between two sweeps. An operator's release:
//     [Judge.Release]. An operator's mode: [Judge.SetMode]. Both are inputs of the
//     core, with a name and a reason.
//
// The function that New takes says which ports must never be switched off (rule 6). [Guard] computes it from a snapshot;
// the core asks it only when a port is about to be disabled, and makes a new one after that.
//
// # State
//
// Per port of the specification one record; of ports that it does not have, a bounded number. A port that was disabled
// stays so, whatever is seen there later (T23), until it is released, the specification changes, or the mode goes below
// Enforce. Ports that are disabled are to be stored by the caller (as facts are); after a restart it passes the facts seen
// there to [Judge.Restore]. A caller that is about to switch a port off may check again: [Judge.Try] records nothing.
//
// A port behind a switch that is not verified any more, whose fact is unchanged since it was verified, is steady
// ([Judge.IsSteady]): its grants stay, since only a protected way can be wrong and still exist.
//
// A verified switch is one that a verified link leads to. Two switches can vouch for each other when both were cut off: the
// caller must Forget what it drops.
package verify
