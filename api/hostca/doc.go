// Package hostca keeps the authorities that certificates of hosts come from: roots of
// the service's own, in the store, with their keys sealed. All replicas of a service
// share them. An authority signs for a period; then the next one does, which was shown
// to operators a day before, and those before stay accepted for as long as a
// certificate of theirs may be in force.
//
// What a certificate is good for is not decided here: it names a host, and admission
// knows which one that host holds.
package hostca
