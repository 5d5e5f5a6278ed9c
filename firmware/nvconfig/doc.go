// Package nvconfig reads and writes the settings of an adapter as the adapter keeps them: items of a header and data. It
// knows where in its item each setting of the hardening list is, the file that carries items to the adapter
// (MLNX.CONFIG.BIN!), how such a file is signed and verified, and the text form that mstconfig's set_raw takes.
//
// An item is addressed by class, target and index (Address). Its header says which priority may write over it: an item of
// priority OEM with OverrideEnabled unset cannot be changed through the registers of the host, whose writes have priority
// USER. That is the lock that a signed file makes. Only an adapter proves that it is effective.
//
// Files are read strictly: a file that two readers might read differently is refused.
package nvconfig
