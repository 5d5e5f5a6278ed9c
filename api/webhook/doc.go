// Package webhook sends requests to destinations that operators name, signed by the specification Standard Webhooks.
//
// A request proves by its signature which service sent it, and by its time and id that it is not an old one. Where it goes
// is checked when the connection is opened, by address: a name may lead anywhere.
package webhook
