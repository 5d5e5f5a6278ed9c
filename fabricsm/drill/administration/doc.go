// Package administration has the drills of subnet administration: registrations, groups, services, queries and floods. It
// is a part of the list in package threats.
package administration
