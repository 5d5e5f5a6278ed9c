// Package delivery has the events that operators want sent to webhooks, in the envelope of CloudEvents.
//
// For each webhook the store has the position up to which events were dealt with, and the messages that wait for another attempt.
// Both change in one transaction, so neither a restart nor another instance that sends from then on loses an event. A
// message may come twice, with the same id. After three days a message is a dead letter, which an operator can have sent
// once more. A webhook has a goroutine of its own: one that is slow delays no other.
package delivery
