// Package alias takes requests for alias GUIDs, as virtual functions have them:
// GUIDInfoRecord Set and Delete (IBTA volume 1, 15.2.5.18). Get and GetTable answer what
// ports really hold, see package record.
//
// A port gets a GUID that the inventory lets it have and that nobody else has or is
// promised, and only at the place where it was when it asked: GUIDs do not move with a
// cable. What was given is saved and programmed by the Subnet Manager.
package alias
