/// The journal's MESSAGE_ID= of the events that people match on (sd-journal(3), docs/log.md). Never changed: alerts name them.
enum JournalMessageID {
    static func of(_ event: String) -> String? { all[event] }

    static let all = [
        "proxy.ready": "e856f5fd6684476f93543cb3b5b27e83",
        "proxy.stop": "3f2e2bc6e73e4c61baa325b434c156fb",
        "proxy.crash": "1da5b54f424a4e89b15735788227cca7",
        "config.reload": "ececa8e199aa419ea1da9891a6abc1c9",
        "config.error": "6a80882f5bcf4081893ff0d682006ea9",
        "config.warning": "07a8887e70e44919897746762e858ea4",
        "pin.mismatch": "bbeaff61f9e146998ca85cc8af6f8baf",
        "pin.report": "72d06392f81b490388482f2af7308c9f",
        "pin.expiring": "b3b08964f4574e79bee85341a8b42c1f",
        "trust.failure": "d184d1cb7f45481084f687fa2c341d31",
        "crl.expiring": "afc75b6d3b754223b43fe3bc808fbee5",
        "crl.failed": "114765aa00dc4919bd2f12fd5dd7d5ea",
        "serializer.mismatch": "59031c7519fe40ed85fd3453d6bf0d5e",
        "authority.created": "b2df8447ae30489b9b460e069b18c00c",
        "state.unwritable": "4e87313fc3a643edb1e57e182e6a16d0",
        "accept.failed": "b258084ca6664419a990f61da3809082",
        "clients.limit": "bd70052e1e5a48dc87b67fdf235b5383",
        "bodies.limit": "359706f8f5c44f8eaef4b46d2f24611c",
        "decoder.failed": "eaa7b5e8136f484aaf9d68ea4019e6e6",
        "reachability.change": "fb80e95510e84398a4b552f966fa428a",
        "library.replaced": "758a442188fa49898510a1fa5c0bc1b4",
    ]
}
