// Package fabric connects the store with the subnet manager. It runs in the sm role and is the only package that knows
// both.
//
// Towards the subnet manager it turns the grants in the ledger into intent: everything that is granted, and everything
// withdrawn whose absence is to be proven. The intent's revision is the store's. Towards the store it writes what the
// subnet manager saw: where the ports of the inventory are, which memberships were read back, nodes, links and tables, and
// how the subnet manager itself is. It writes only what changed, several records in one transaction, the memberships first.
// It also keeps the facts that must survive a restart.
//
// It judges nothing. Absence is believed only from an explicit event or from the view of a settled fabric. So a restart,
// which begins by knowing nothing, takes no host's place away.
//
//	link := fabric.New(fabric.Options{Store: s, Log: log})
//	go link.Run(ctx)
//	driver.Run(ctx, driver.Options{Store: link, OnEvent: link.OnEvent, OnView: link.OnView, ...}, link.Intents())
package fabric
