package drills

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"portcullis/api/webhook"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys"
)

// printedSecrets is T126: what is planted as a secret is looked for in all that is written for people and programs.
func printedSecrets(s *drill.Scene) {
	v := newSite(s, options{
		fabric:      drill.SiteOptions{ClassKeys: true, SM: sm.Config{MKey: mkeys.Config{Rotation: keys.RotationConfig{Period: 20 * time.Minute, Grace: 2 * time.Minute, Window: 4}}}},
		credentials: []account{{name: "ops"}, {name: "bob"}},
	})
	red := v.cluster("ops", "red", "h1", "h5")
	v.VictimOf("h1", "h5", red)
	v.Run(45 * time.Minute)
	v.sync()

	s.Tried("all is logged that there is to log while keys change and tools fail; every secret is printed in every way a program prints, by itself and in what holds it")
	v.mark()
	for _, who := range []string{"ops", "bob"} {
		for _, path := range []string{"/v1/hosts", "/v1/fabric/keys/devices", "/metrics", "/v1/nothing", "/v1/hosts/" + v.tokens[who]} {
			v.call(who, "GET", path, "")
		}
	}
	v.call("ops", "POST", "/v1/tenants", `{"name":"`+v.tokens["bob"]+`"}`)
	v.tokens["eve"] = v.tokens["bob"] + "x"
	v.call("eve", "GET", "/v1/hosts", "")
	text := v.kept.Dump()
	var events bytes.Buffer
	for _, h := range v.Events() {
		fmt.Fprintf(&events, "%v %+v %#v\n", h.Event, h.Event, h.Event)
	}
	logged, _, _ := strings.Cut(v.said.String(), "\x00")
	places := map[string][]byte{
		"the log and the answers": []byte(logged), "events": events.Bytes(), "what programs print": v.printed(),
		"the view": fmt.Appendf(nil, "%+v %#v", v.View(), v.View()), "facts": fmt.Appendf(nil, "%+v %#v", v.Facts(), v.Facts()),
	}
	count := 0
	for name, place := range places {
		for _, secret := range v.secrets() {
			form := leaked(place, secret)
			count++
			if !s.Check(form == "", "a key is in %s, %s", name, form) {
				return
			}
		}
		for _, word := range []string{plantedWord, strings.TrimPrefix(hookSecret, "whsec_")} {
			s.Check(!bytes.Contains(place, []byte(word)), "a planted secret is in %s", name)
		}
	}
	for who, token := range v.tokens {
		s.Check(!bytes.Contains(text, []byte(token)), "the token of %s is in the store", who)
	}
	s.Check(len(v.secrets()) > 20 && len(places["what programs print"]) > 2000, "%d secrets were looked for, so nothing is proven", len(v.secrets()))
	s.Check(leaked(fmt.Appendf(nil, "%x", v.secrets()[0]), v.secrets()[0]) != "", "a key that is printed is not found, so nothing is proven")
	s.Stopped("secrets have types that print a word instead: none was found, in %d comparisons", count)
	v.Counted(bytes.Contains(places["what programs print"], []byte("redacted")) || bytes.Contains(places["what programs print"], []byte("secret")),
		"where a secret would be printed there is a word")
}

// plantedWord is a secret that has no meaning.
const plantedWord = "planted-canary-7f3a"

// printed is every secret in every way in which a program prints.
func (v *site) printed() []byte {
	secret, err := webhook.ParseSecret(hookSecret)
	v.scene.Must(err)
	key := v.everyKey()[0]
	m := key.M()
	type holder struct {
		Key    keys.Key
		M      ib.MKey
		Word   ib.SecretText
		Hook   webhook.Secret
		Master keys.Master
	}
	h := holder{key, m, ib.NewSecretText(plantedWord), secret, v.scene.Master()}
	var out bytes.Buffer
	text, structured := slog.New(slog.NewTextHandler(&out, nil)), slog.New(slog.NewJSONHandler(&out, nil))
	for _, what := range []any{h, &h, []holder{h}, map[string]holder{"a": h}, key, m, &m, h.Word, h.Hook, h.Master, v.Facts()[len(v.Facts())-1], errors.Join(fmt.Errorf("with %v", m))} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%T"} {
			fmt.Fprintf(&out, verb+"\n", what)
		}
		data, err := json.Marshal(what) // what cannot be written is not written
		fmt.Fprintf(&out, "%s %v\n", data, err)
		text.Info("drill", "secret", what)
		structured.Info("drill", "secret", what)
	}
	return out.Bytes()
}
