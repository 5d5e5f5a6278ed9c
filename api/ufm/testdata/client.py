#!/usr/bin/env python3
"""Calls the surface as scripts for UFM do: requests, both forms of credentials, True and False in queries."""

import sys

import requests

url, authority, user, token, first, second = sys.argv[1:7]


def session(prefix, **kwargs):
    s = requests.Session()
    s.trust_env = False  # a bundle named in the environment would count instead of verify
    s.verify = authority
    s.auth = kwargs.get("auth")
    s.headers.update(kwargs.get("headers", {}))

    def call(method, path, want=200, **more):
        r = s.request(method, url + prefix + path, allow_redirects=False, timeout=30, **more)
        assert r.status_code == want, (method, path, r.status_code, r.text)
        return r.json()

    return call


ways = {
    "/ufmRest": session("/ufmRest", auth=(user, token)),
    "/ufmRestV2": session("/ufmRestV2", auth=(user, token)),
    "/ufmRestV3": session("/ufmRestV3", headers={"Authorization": "Basic " + token}),
}

for number, (prefix, call) in enumerate(ways.items(), 0x21):
    key = hex(number)
    assert tuple(int(n) for n in call("GET", "/app/ufm_version")["ufm_release_version"].split("-")[0].split(".")) >= (6, 19)
    before = call("GET", "/resources/pkeys")
    assert isinstance(before, list) and key not in before, before

    call("POST", "/resources/pkeys/add", json={"pkey": key, "index0": False, "ip_over_ib": True})
    call("POST", "/resources/pkeys/add", json={"pkey": key}, want=409)
    assert call("GET", "/resources/pkeys/" + key, params={"guids_data": True})["guids"] == []

    call("PUT", "/resources/pkeys/", json={"pkey": "0x%04X" % number, "guids": [first], "membership": "full", "index0": True, "ip_over_ib": True})
    call("POST", "/resources/pkeys", json={"pkey": "0x%04X" % number, "guids": [second.upper()], "memberships": ["full"]})
    members = {m["guid"] for m in call("GET", "/resources/pkeys/" + key, params={"guids_data": True})["guids"]}
    assert {first, second} <= members, members
    ports = {p["guid"]: p for p in call("GET", "/resources/ports", params={"active": False, "show_disabled": True})}
    assert set(members) <= set(ports), ports
    assert all(s["type"] == "host" for s in call("GET", "/resources/systems"))

    call("DELETE", "/resources/pkeys/%s/guids/%s,%s" % (key, first, second))
    call("DELETE", "/resources/pkeys/%s/guids/%s" % (key, first), json={})
    call("DELETE", "/resources/pkeys/" + key)
    call("DELETE", "/resources/pkeys/" + key, want=404)
    assert call("GET", "/resources/pkeys/" + key, params={"guids_data": True, "qos_conf": True}) == {}
    call("POST", "/resources/pkeys", json={"pkey": "0x7fff", "guids": [first]}, want=403)
    call("GET", "/app/smconf")
    print("done", prefix, flush=True)
    sys.stdin.readline()  # until the hosts are released

wrong = session("/ufmRest", auth=(user, token + "x"))
assert "Error 401" in wrong("GET", "/app/ufm_version", want=401)["error"]
print("done", flush=True)
