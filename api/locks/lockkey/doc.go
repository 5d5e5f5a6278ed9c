// Package lockkey makes the keys that lock adapters against their own hosts (MLOCK). A key is derived from one secret of
// the site, the node GUID of the adapter and an epoch that counts up, so that no key is stored anywhere. A holder of the
// secret can open every card, also when the store is lost.
package lockkey
