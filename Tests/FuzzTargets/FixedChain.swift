import Foundation

/// A root, an issuer and a leaf for `a.test`, with evidence for it. Tests/Fuzz/chain.py wrote it, and discarded the
/// keys.
enum FixedChain {
    /// Everything here is valid at this time.
    static let time: Int64 = 1_800_000_000

    /// DER, like everything that follows.
    static let leaf = bytes(
        """
        MIIBrTCCAVSgAwIBAgICA+wwCgYIKoZIzj0EAwIwFjEUMBIGA1UEAwwLRnV6eiBpc3N1ZXIwHhcNMjYxMTI0MDAwNzMyWhcNNDYxMTE5
        MDAwNzMyWjARMQ8wDQYDVQQDDAZhLnRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATpZPds9y6Idp6ByYgFuZ4zhmtlloVYP7BE
        NRZledUMgW443t+TO1LKenHW2b4IXwN9Oip1uN1BLABl0H8oWKoTo4GWMIGTMAkGA1UdEwQCMAAwDgYDVR0PAQH/BAQDAgeAMBMGA1Ud
        JQQMMAoGCCsGAQUFBwMBMCEGA1UdEQQaMBiCBmEudGVzdIIIKi5iLnRlc3SHBMAAAgEwHQYDVR0OBBYEFAG1xG9isRI2c7xyAD0LjcUy
        mMWfMB8GA1UdIwQYMBaAFEtHHpNcl9hgZN2D/Gv1lhJzNKuTMAoGCCqGSM49BAMCA0cAMEQCIC4E0289Eo2cBOkSC60wKl7S7M0fOK6N
        J4gpeSyPo1n1AiBVNloF+rdKTw0BgHV8B8XborFhwQJjiSid4AVIq8x7Ww==
        """)

    /// It may issue names below `test` only.
    static let issuer = bytes(
        """
        MIIBlTCCATugAwIBAgICA+4wCgYIKoZIzj0EAwIwFDESMBAGA1UEAwwJRnV6eiByb290MB4XDTI2MTEyNDAwMDczMloXDTQ2MTExOTAw
        MDczMlowFjEUMBIGA1UEAwwLRnV6eiBpc3N1ZXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATjsuXpV0hULdDr6pT8KcvjNFbA9ea5
        o+83LxsAvrBDDzbit7datKFizR7PVjfFc/111FJ4Zrcv4OqihcP9fPKBo3sweTASBgNVHRMBAf8ECDAGAQH/AgEAMA4GA1UdDwEB/wQE
        AwIBBjAdBgNVHQ4EFgQUS0cek1yX2GBk3YP8a/WWEnM0q5MwHwYDVR0jBBgwFoAUml1RTB1pUgsHlcI2uQcQCvBbS9YwEwYDVR0eBAww
        CqAIMAaCBHRlc3QwCgYIKoZIzj0EAwIDSAAwRQIgFaV3uL6EE4gE2tNfG6cng9/8THXTq1VPBtaA21VHt3oCIQC4CehXBXjEmA3Xizas
        Gfy/9qeazsa6dttvMC7ZzaEEIQ==
        """)

    /// The only anchor.
    static let root = bytes(
        """
        MIIBWjCCAQCgAwIBAgICA+wwCgYIKoZIzj0EAwIwFDESMBAGA1UEAwwJRnV6eiByb290MB4XDTI2MTEyNDAwMDczMloXDTQ2MTExOTAw
        MDczMlowFDESMBAGA1UEAwwJRnV6eiByb290MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEnZri6jMMVLNJ3p0yfdBQv9mS+WVi590Z
        7QTTMuRycIIsOx64xhwQNrJNlnXtKYcI7guVgAYsllEPnAA3y+2h6qNCMEAwDwYDVR0TAQH/BAUwAwEB/zAOBgNVHQ8BAf8EBAMCAQYw
        HQYDVR0OBBYEFJpdUUwdaVILB5XCNrkHEArwW0vWMAoGCCqGSM49BAMCA0gAMEUCIQCCcTcJjxjE48h98BUhhMTlGTNOnhFdSvozhJB4
        sPkAyAIgLNOd2em5qQW057aOHHpBDIL9xCgJ4XK2TOdbzk2LiYg=
        """)

    /// An OCSP response: the leaf is good.
    static let status = bytes(
        """
        MIICqgoBAKCCAqMwggKfBgkrBgEFBQcwAQEEggKQMIICjDCBkqEYMBYxFDASBgNVBAMMC0Z1enogaXNzdWVyGA8yMDI2MTEyNDAwMDcz
        MlowZTBjMDswCQYFKw4DAhoFAAQU5SJRarOlIw9A3NSif+e7P/Kh7m0EFEtHHpNcl9hgZN2D/Gv1lhJzNKuTAgID7IAAGA8yMDI2MTEy
        NDAwMDczMlqgERgPMjA0NjAxMjMwMDA3MzJaMAoGCCqGSM49BAMCA0gAMEUCIQDzjZ8BnmonqXXICA0DrVwd1XwM8wPtaDJ8qJyixDhM
        wgIgKfWT64bwYqcrMysYPFsob4p/MPLbnT6WX91y5Jlr/u+gggGdMIIBmTCCAZUwggE7oAMCAQICAgPuMAoGCCqGSM49BAMCMBQxEjAQ
        BgNVBAMMCUZ1enogcm9vdDAeFw0yNjExMjQwMDA3MzJaFw00NjExMTkwMDA3MzJaMBYxFDASBgNVBAMMC0Z1enogaXNzdWVyMFkwEwYH
        KoZIzj0CAQYIKoZIzj0DAQcDQgAE47Ll6VdIVC3Q6+qU/CnL4zRWwPXmuaPvNy8bAL6wQw824re3WrShYs0ez1Y3xXP9ddRSeGa3L+Dq
        ooXD/XzygaN7MHkwEgYDVR0TAQH/BAgwBgEB/wIBADAOBgNVHQ8BAf8EBAMCAQYwHQYDVR0OBBYEFEtHHpNcl9hgZN2D/Gv1lhJzNKuT
        MB8GA1UdIwQYMBaAFJpdUUwdaVILB5XCNrkHEArwW0vWMBMGA1UdHgQMMAqgCDAGggR0ZXN0MAoGCCqGSM49BAMCA0gAMEUCIBWld7i+
        hBOIBNrTXxunJ4Pf/Ex106tVTwbWgNtVR7d6AiEAuAnoVwV4xJgN14s2rBn8v/anms7GunbbbzAu2c2hBCE=
        """)

    /// Two CT logs in OpenSSL's form.
    static let logs = bytes(
        """
        ZW5hYmxlZF9sb2dzID0gb25lLCB0d28KW29uZV0KZGVzY3JpcHRpb24gPSBvbmUKa2V5ID0gTUZrd0V3WUhLb1pJemowQ0FRWUlLb1pJ
        emowREFRY0RRZ0FFYXlWVFVtN0NsdytjcnRYZ1pMUklpVXcrV1JKUXB5dFBCdlpnZzI1R0FMTGNVTVgvTTd2c2taWm1QTHNzWlJHUmFY
        N1NXdVpLMWpETU1ndE5KUHRJUkE9PQpbdHdvXQpkZXNjcmlwdGlvbiA9IHR3bwprZXkgPSBNRmt3RXdZSEtvWkl6ajBDQVFZSUtvWkl6
        ajBEQVFjRFFnQUVabG9obVA5VjBVa2t3WElUSEhSMTNkcXdRWmFOSHEyRXZzRjhSVFk3ZzR2em05ZWI5OXByV3ZnYTZWb1RRdTlNWC9N
        eFJKZzBkV1pTaHQxcklvQ2R3QT09Cg==
        """)

    private static func bytes(_ base64: String) -> [UInt8] {
        Data(base64Encoded: base64, options: .ignoreUnknownCharacters).map(Array.init) ?? []
    }
}
