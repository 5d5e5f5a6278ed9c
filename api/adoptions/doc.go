// Package adoptions keeps memberships that a fabric had before the service managed it, as package adoption decides.
//
// An operator stages a list, and another one confirms it. From then on the ledger has a grant for each membership that names the
// adoption, and no host: the subnet manager keeps it at the listed place. When admission grants the same membership, its grant
// replaces this one without a change of the fabric. Others are withdrawn and proven absent as all grants are.
package adoptions
