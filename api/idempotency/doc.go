// Package idempotency keeps the first answers to requests that name themselves, so that a request which is sent again changes
// nothing a second time.
//
// A client that gets no answer does not know whether its request was carried out. It sends the request again with the same
// Idempotency-Key (draft-ietf-httpapi-idempotency-key-header) and receives the first answer.
//
// A key belongs to the credential that sent it. An answer is kept for a day at least. A key whose request has no answer, since
// the instance ended before, is refused for as long: whether the change was made is unknown.
package idempotency
