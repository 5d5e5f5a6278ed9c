package profile

// Default returns the list that is in force where a site configures none. Each call returns a fresh one.
func Default() *Profile {
	return &Profile{Name: "portcullis", Version: 1, Rules: []Rule{
		{
			Parameter: "SM_DISABLE", Want: "True", Need: Required,
			Reason: "the SMP firewall: root on the host can neither be a subnet manager nor send subnet management packets",
		},
		{
			Parameter: "HOST_PRIV_FLASH_ACCESS", Want: "DISABLE", Need: Required,
			Reason: "writing the flash bypasses every check of firmware and settings",
		},
		{
			Parameter: "HOST_PRIV_NV_HOST", Want: "DISABLE", Need: Required,
			Reason: "a tenant must not leave changes in the host's own settings (boot, PCI)",
		},
		{
			Parameter: "HOST_PRIV_NV_PORT", Want: "DISABLE", Need: Required,
			Reason: "settings of ports (link type, links kept up) affect the fabric",
		},
		{
			Parameter: "HOST_PRIV_NV_GLOBAL", Want: "DISABLE", Need: Required,
			Reason: "SM_DISABLE is a global setting: this prevents the host from writing it",
		},
		{
			Parameter: "HOST_PRIV_NV_INTERNAL_CPU", Want: "DISABLE", Need: WhereKnown,
			Reason: "the mode of the processor on the card decides which side controls it",
		},
		{
			Parameter: "HOST_PRIV_PCC_UPDATE", Want: "DISABLE", Need: WhereKnown,
			Reason: "congestion control algorithms are programs on the card: a tenant's program would run for the next tenant",
		},
		{
			Parameter: "HOST_PRIV_FW_UPDATE", Want: "DISABLE", Need: Required,
			Reason: "signed firmware may still be old and known to be weak: only the site updates",
		},
		{
			Parameter: "HOST_PRIV_NIC_RESET", Need: Record,
			Reason: "DISABLE also prevents a tenant from recovering a card that hangs; the site decides. A reset makes no setting that is locked otherwise",
		},
		{
			Parameter: "HOST_PRIV_RSHIM", Want: "DISABLE", Need: WhereKnown,
			Reason: "RShim is console and boot of the card's own processor",
		},
		{
			Parameter: "HOST_PRIV_DYNAMIC_VF_MSIX", Want: "DISABLE", Need: WhereKnown,
			Reason: "how interrupts are shared among virtual functions is decided at provisioning",
		},
		{
			Parameter: "HOST_PRIV_LEVEL", Want: "LIMITED", Need: WhereKnown,
			Reason: "on BlueField a privileged host controls what the card shares",
		},
		{
			Parameter: "HOST_DISABLE_PORT_OWNER", Want: "True", Need: WhereKnown,
			Reason: "the owner of a port configures it for all its users",
		},
		{
			Parameter: "HOST_DISABLE_PORT_COUNTER", Want: "False", Need: WhereKnown,
			Reason: "a tenant may see the counters of its own port; diagnosis needs them",
		},
		{
			Parameter: "HOST_DISABLE_TRACER_OWNER", Want: "True", Need: WhereKnown,
			Reason: "traces of the firmware show what other tenants do",
		},
		{
			Parameter: "HOST_DISABLE_RSHIM", Want: "True", Need: WhereKnown,
			Reason: "as HOST_PRIV_RSHIM, for hosts of BlueField",
		},
		{
			Parameter: "INTERNAL_CPU_RSHIM", Want: "DISABLED", Need: WhereKnown,
			Reason: "as HOST_PRIV_RSHIM: the function is not shown to the host at all",
		},
		{
			Parameter: "VIRTUAL_GUID_EN", Want: "False", Need: WhereKnown, AbsentIsFine: true,
			Reason: "with an alternate GUID the card claims to be another one: admission is by GUID at its place",
		},
		{
			Parameter: "PSID_LOCK", Want: DevicePSID, Need: WhereKnown,
			Reason: "firmware of another board would bring other settings and other keys",
		},
		{
			Parameter: "PSID_LOCK_MINOR", Need: Record,
			Reason: "whether variants of the same board may be exchanged is the site's decision",
		},
		{
			Parameter: "ADVANCED_TESTABILITY", Want: "False", Need: WhereKnown,
			Reason: "injecting PCIe errors is for laboratories",
		},
		{
			Parameter: "DPA_AUTHENTICATION", Want: "True", Need: WhereKnown,
			Reason: "only signed programs run on the card's data path accelerator",
		},
		{
			Parameter: "RDE_DISABLE", Need: Record,
			Reason: "Redfish through the BMC: off, unless the site's BMC configures cards with it",
		},
		{
			Parameter: "PLDM_FW_UPDATE_DISABLE", Need: Record,
			Reason: "firmware updates by the BMC: off, unless the site updates that way",
		},
		{
			Parameter: "MCTP_I3C_DISABLE", Need: Record,
			Reason: "a BMC access to the card: off where the BMC does not use it",
		},
		{
			Parameter: "RBT_DISABLE", Need: Record,
			Reason: "the BMC's network through the card (NC-SI): off where it has its own",
		},
		{
			Parameter: "PCIE_SMBUS_DISABLE", Need: Record,
			Reason: "a BMC access to the card: off where the BMC does not use it",
		},
		{
			Parameter: "PCIE_IN_BAND_VDM_DISABLE", Need: Record,
			Reason: "management messages over PCIe, which the host may be able to send too: off, unless the BMC has no other way",
		},
		{
			Parameter: "LINK_TYPE", Want: "IB", Need: WhereKnown,
			Reason: "on Ethernet the port leaves the fabric, and this product's enforcement",
		},
		{
			Parameter: "SRIOV_EN", Need: Record,
			Reason: "the site plans virtual functions; statements report them",
		},
		{
			Parameter: "NUM_OF_VFS", Need: Record,
			Reason: "as SRIOV_EN",
		},
		{
			Parameter: "EXP_ROM_PXE_ENABLE", Want: "False", Need: WhereKnown,
			Reason: "no boot over the fabric, where a neighbour could answer; override it if the site boots over this adapter",
		},
		{
			Parameter: "EXP_ROM_UEFI_x86_ENABLE", Want: "False", Need: WhereKnown,
			Reason: "the card's driver in the host firmware runs before our first measurement; override it if the site boots over this adapter",
		},
		{
			Parameter: "LEGACY_BOOT_PROTOCOL", Want: "NONE", Need: WhereKnown,
			Reason: "as EXP_ROM_PXE_ENABLE, for hosts without UEFI",
		},
		{
			Parameter: "SAFE_MODE_ENABLE", Want: "False", Need: WhereKnown,
			Reason: "a host that often fails to boot must not restore defaults",
		},
		{
			Parameter: "SAFE_MODE_THRESHOLD", Want: "0", Need: WhereKnown,
			Reason: "as SAFE_MODE_ENABLE",
		},
		{
			Parameter: "P2P_ORDERING_MODE", Need: Record,
			Reason: "whether peers on PCIe are protected from each other depends on the host",
		},
		{
			Parameter: "ICMD_SEM_LOCK_THRESHOLD", Need: Record,
			Reason: "how long tools may hold the card's command interface",
		},
		{
			Parameter: "KEEP_IB_LINK_UP", Need: Record,
			Reason: "a link that stays up while its host is down changes what the fabric shows",
		},
		{
			Parameter: "SRIOV_IB_ROUTING_MODE", Need: Record,
			Reason: "whether virtual functions are distinguished by GID or by LID",
		},
	}}
}
