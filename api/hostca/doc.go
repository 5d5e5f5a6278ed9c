// Package hostca has the authorities that certificates of hosts come from: roots of the
// service's own, which package keyring keeps. The next one is shown to operators a day
// before it signs.
//
// What a certificate is good for is not decided here: it names a host, and admission
// knows which one that host holds.
package hostca
