// Package reader reads a fabric for package proof: it finds the devices by directed route, from the own port, and asks each
// for its tables.
//
// It is a state machine without a clock and without I/O. [Reader.Next] returns requests, which are Gets only.
// [Reader.Answer] and [Reader.Expire] take what became of them. It shares neither state nor code with the Subnet Manager.
//
// Everything is asked twice: the second round begins after the last answer of the first. A value that differs between the
// two rounds is [proof.Inconsistent]. A value that a device did not answer, refused, or answered with nonsense, is
// [proof.NotRead]. So isolation never follows from it.
//
// An M_Key is sent to a place only if [Options.Key] returns one for it. What is behind a switch that [Options.Owner] does
// not declare to be infrastructure is not read: such a switch passes every packet, whatever it answers.
//
// [Earlier] has a reader build on a reading before: it follows the same ways, and asks only for what may have changed since.
//
// Alias GUIDs count where they are read: they say which port packets to a GUID go to, and let no packet pass by themselves.
//
// SLtoVL tables can only have a packet dropped. They are read, one for each port, for the record: [Found.Lanes]. It does not read virtual
// ports.
package reader
