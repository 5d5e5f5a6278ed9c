package nvconfig

// Words for privileges and the like.
var (
	privilege = words("DEVICE_DEFAULT", "ENABLE", "DISABLE")
	level     = words("PRIVILEGED", "LIMITED")
	rshim     = words("ENABLED", "DISABLED")
	linkType  = []Value{{"IB", 1}, {"ETH", 2}}
	bootROM   = []Value{{"NONE", 0}, {"PXE", 1}, {"ISCSI", 2}, {"PXE_WO_FAIL_ISCSI", 4}, {"ISCSI_WO_FAIL_PXE", 5}}
	ordering  = words("DEVICE_DEFAULT", "SECURE_NONE", "SECURE_TRUST", "SECURE_ALL")
	routing   = words("GID", "LID")
	secure    = words("UNLOCKED", "LOCKED", "LOCK_FW_UPDATE", "LOCK_HOST_CFG")
	nonces    = words("b32", "b76")
)

// layouts are the items of the hardening list, and those that make a file.
// Places are as the vendor publishes them: dword, highest bit, lowest bit.
var layouts = []Layout{
	{Name: "nv_host_sm_conf", Class: Global, Index: 290, Size: 4, Whole: true, Fields: []Field{
		flag("SM_DISABLE", 0, 31),
	}},
	{Name: "nv_external_host_priv_conf", Class: Global, Index: 291, Size: 16, Whole: true, Fields: []Field{
		enum("HOST_PRIV_FLASH_ACCESS", 17, 16, privilege),
		enum("HOST_PRIV_NV_HOST", 19, 18, privilege),
		enum("HOST_PRIV_NV_PORT", 21, 20, privilege),
		enum("HOST_PRIV_NV_GLOBAL", 23, 22, privilege),
		enum("HOST_PRIV_NV_INTERNAL_CPU", 25, 24, privilege),
		enum("HOST_PRIV_PCC_UPDATE", 27, 26, privilege),
		enum("HOST_PRIV_FW_UPDATE", 29, 28, privilege),
		enum("HOST_PRIV_NIC_RESET", 31, 30, privilege),
	}},
	{Name: "nv_external_host_priv_fast_conf", Class: Global, Index: 152, Size: 4, Whole: true, Fields: []Field{
		enum("HOST_PRIV_RSHIM", 31, 30, privilege),
	}},
	{Name: "nv_external_host_priv_fast_conf_2", Class: Global, Index: 163, Size: 4, Whole: true, Fields: []Field{
		enum("HOST_PRIV_DYNAMIC_VF_MSIX", 31, 30, privilege),
	}},
	{Name: "nv_host_priv_conf", Class: Host, Index: 131, Size: 4, Whole: true, Fields: []Field{
		enum("HOST_PRIV_LEVEL", 29, 28, level),
		flag("HOST_DISABLE_PORT_OWNER", 0, 0),
		flag("HOST_DISABLE_PORT_COUNTER", 0, 1),
		flag("HOST_DISABLE_TRACER_OWNER", 0, 2),
		flag("HOST_DISABLE_RSHIM", 0, 3),
	}},
	{Name: "nv_global_pci_conf", Class: Global, Index: 128, Size: 12, Fields: []Field{
		enum("INTERNAL_CPU_RSHIM", 13, 13, rshim),
		flag("SRIOV_VALID", 0, 31),
		flag("SRIOV_EN", 1, 31).validBy("SRIOV_VALID"),
		number("NUM_OF_VFS", Number, 1, 15, 0).validBy("SRIOV_VALID"),
	}},
	{Name: "nv_virt_guid_addr", Class: HostFunction, Index: 273, Size: 12, Whole: true, Fields: []Field{
		flag("VIRTUAL_GUID_EN", 0, 31),
		flag("VIRTUAL_GUID_ERASE_ON_POWERUP", 0, 29),
		{Name: "VIRTUAL_NODE_GUID", Kind: GUID, Bit: 32, Width: 64},
	}},
	{Name: "nv_psid_lock", Class: Global, Index: 528, Size: 20, Whole: true, Fields: []Field{
		{Name: "PSID_LOCK", Kind: Text, Bit: 32, Width: 128},
		flag("PSID_LOCK_MINOR", 0, 31),
	}},
	{Name: "nv_advanced_testability", Class: Global, Index: 292, Size: 4, Whole: true, Fields: []Field{
		flag("ADVANCED_TESTABILITY", 0, 0),
	}},
	{Name: "nv_dpa_auth", Class: Global, Index: 21, Size: 4, Whole: true, Fields: []Field{
		flag("DPA_AUTHENTICATION", 0, 31),
	}},
	{Name: "nv_host_mng_conf", Class: Global, Index: 289, Size: 4, Whole: true, Fields: []Field{
		flag("RDE_DISABLE", 0, 22),
		flag("PLDM_FW_UPDATE_DISABLE", 0, 23),
		flag("MCTP_I3C_DISABLE", 0, 28),
		flag("RBT_DISABLE", 0, 29),
		flag("PCIE_SMBUS_DISABLE", 0, 30),
		flag("PCIE_IN_BAND_VDM_DISABLE", 0, 31),
	}},
	{Name: "nv_vpi_link_type", Class: Port, Index: 18, Size: 4, Whole: true, Fields: []Field{
		enum("LINK_TYPE", 3, 2, linkType),
	}},
	{Name: "nv_pci_conf", Class: Host, Index: 128, Size: 4, Fields: []Field{
		flag("EXP_ROM_PXE_ENABLE", 0, 26),
		flag("EXP_ROM_UEFI_x86_ENABLE", 0, 25),
		enum("P2P_ORDERING_MODE", 13, 12, ordering),
	}},
	{Name: "nv_rom_boot_conf1", Class: HostFunction, Index: 545, Size: 4, Fields: []Field{
		enum("LEGACY_BOOT_PROTOCOL", 23, 16, bootROM),
	}},
	{Name: "safe_mode_conf", Class: Host, Index: 130, Size: 4, Whole: true, Fields: []Field{
		flag("SAFE_MODE_ENABLE", 0, 30),
		number("SAFE_MODE_THRESHOLD", Number, 0, 7, 0),
	}},
	{Name: "nv_host_sync_conf", Class: Global, Index: 138, Size: 32, Fields: []Field{
		number("ICMD_SEM_LOCK_THRESHOLD", Number, 0, 31, 16),
	}},
	{Name: "nv_keep_link_up", Class: Port, Index: 400, Size: 4, Fields: []Field{
		flag("KEEP_IB_LINK_UP", 0, 1),
	}},
	{Name: "nv_mpfs_conf", Class: Port, Index: 406, Size: 4, Fields: []Field{
		enum("SRIOV_IB_ROUTING_MODE", 30, 30, routing),
	}},
	{Name: "nv_config_profile", Class: Global, Index: 293, Size: 24, Whole: true, Fields: []Field{
		{Name: "PROFILE_UUID", Kind: UUIDs, Bit: 0, Width: 128},
		number("PROFILE_VERSION", Number, 4, 31, 0),
	}},
	// The key of the secure host is in this item too; no field reads it.
	{Name: "nv_secure_host", Class: Global, Index: 411, Size: 32, Fields: []Field{
		enum("SECURE_HOST_STATE", 31, 24, secure),
	}},

	{Name: "nv_file_id_mlnx", Class: Global, Index: idMLNX, Size: fileIDSize, Fields: fileIDFields("MLNX_")},
	{Name: "nv_file_id_vendor", Class: Global, Index: idVendor, Size: fileIDSize, Fields: fileIDFields("")},
	{Name: "file_applicable_to", Class: FileItem, Index: idApplicable, Size: 32, Whole: true, Fields: []Field{
		{Name: "PSID", Kind: Text, Bit: 0, Width: 128},
		{Name: "PSID_BRANCH", Kind: Text, Bit: 128, Width: 128},
	}},
	{Name: "file_signature", Class: FileItem, Index: idSignature, Size: 0x140},
	{Name: "file_signature_4096_a", Class: FileItem, Index: idSignature4096a, Size: 0x120},
	{Name: "file_signature_4096_b", Class: FileItem, Index: idSignature4096b, Size: 0x120},
	{Name: "file_signature_3072", Class: FileItem, Index: idSignature3072, Size: 416},
	{Name: "file_device_unique", Class: FileItem, Index: idDeviceUnique, Size: 488, Fields: []Field{
		enum("NONCE_VERSION", 31, 24, nonces),
		number("VALID_ENTRIES", Number, 0, 23, 20),
	}},
	{Name: "file_device_id", Class: FileItem, Index: idDeviceID, Size: 32, Whole: true, Fields: []Field{
		{Name: "DEVICE_ID", Kind: Hex, Bit: 0, Width: 256},
	}},
}

// fileIDFields are those of the item that says what a file is. The date is
// packed decimal, so that its hexadecimal digits are those of the date.
func fileIDFields(prefix string) []Field {
	return []Field{
		flag(prefix+"FILE_ERASE_LOWER_PRIORITY", 0, 31),
		flag(prefix+"FILE_PER_TLV_PRIORITY", 0, 30),
		flag(prefix+"FILE_KEEP_SAME_PRIORITY", 0, 29),
		flag(prefix+"FILE_DISABLE_OVERRIDE", 0, 28),
		number(prefix+"FILE_VERSION", Number, 1, 31, 0),
		number(prefix+"FILE_DATE", Hex, 2, 31, 0),
		number(prefix+"FILE_TIME", Hex, 3, 31, 8),
	}
}
