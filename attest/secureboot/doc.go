// Package secureboot computes what UEFI firmware measures of Secure Boot into
// PCR 7: its variables PK, KEK, db and dbx as they are, and of a signed image the
// one entry of db that it was started by.
//
// Which entry that is Variables.Authority finds as firmware does: signatures in
// their order, entries in theirs, after dbx forbade neither image nor signer.
package secureboot
