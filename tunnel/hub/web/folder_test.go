package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"localpc/tunnel/hub/store"
)

func TestFolderOfACompanionsComputer(t *testing.T) {
	t.Parallel()
	s := owned(t)
	s.machine(store.OwnerID, "m1", "Ours", true)
	s.machine(store.OwnerID, "m2", "Workshop", true)
	if _, err := s.store.Connected(t.Context(), store.Machine{ID: "m2", User: store.OwnerID, Name: "Workshop", Platform: "linux", Arch: "amd64", Software: store.CompanionSoftware + "0.3.0"}); err != nil {
		t.Fatal(err)
	}
	bo := s.member("Bo")
	s.machine(bo.ID, "m3", "Bo's", true)
	c := s.caller().logIn("Ana")
	has := func(path string, words ...string) {
		t.Helper()
		a := c.get(path)
		for _, w := range words {
			if a.StatusCode != http.StatusOK || !strings.Contains(a.text, w) {
				t.Errorf("%s lacks %q: %d", path, w, a.StatusCode)
			}
		}
	}
	has("/", "No folder is set, so no program can work there.", "/machines/m2/folder")
	if strings.Contains(c.get("/").text, "/machines/m1/folder") {
		t.Error("a computer that asks its person has the link too")
	}
	has("/machines/m2/folder", "Folder for programs on Workshop")
	for _, id := range []string{"m1", "m3", "none"} {
		if a := c.get("/machines/" + id + "/folder"); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", id, a.StatusCode)
		}
		if a := c.post("/machines/"+id+"/folder", url.Values{"folder": {"/x"}}); a.StatusCode != http.StatusNotFound {
			t.Errorf("set %s: %d", id, a.StatusCode)
		}
	}
	for folder, word := range map[string]string{"/nowhere": "The computer does not offer the folder /nowhere.", "/a\x00b": "cannot be seen", "/" + strings.Repeat("x", 5000): "too long"} {
		if a := c.post("/machines/m2/folder", url.Values{"folder": {folder}}); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.text, word) {
			t.Errorf("%.20q: %d", folder, a.StatusCode)
		}
	}
	if a := c.post("/machines/m2/folder", url.Values{"folder": {" /home/ana/<work> "}}); a.StatusCode != http.StatusSeeOther {
		t.Errorf("set: %d %s", a.StatusCode, a.text)
	}
	has("/", "Programs work in <code>/home/ana/&lt;work&gt;</code>", "from now on")
	has("/machines/m2/folder", "value=\"/home/ana/&lt;work&gt;\"")
	if folder, err := s.store.Folder(t.Context(), store.OwnerID, "m2"); err != nil || folder != "/home/ana/<work>" {
		t.Errorf("kept: %q %v", folder, err)
	}
	c.post("/machines/m2/folder", url.Values{"folder": {""}})
	has("/", "No folder is set", "No new program can work on Workshop.")
}

func TestFolderPage(t *testing.T) {
	t.Parallel()
	bothSizes(t, func(t *testing.T, z size) {
		s := owned(t)
		s.machine(store.OwnerID, "m2", "Workshop", true)
		if _, err := s.store.Connected(t.Context(), store.Machine{ID: "m2", User: store.OwnerID, Name: "Workshop", Platform: "linux", Arch: "amd64", Software: store.CompanionSoftware + "0.3.0"}); err != nil {
			t.Fatal(err)
		}
		b := s.browser(z).logIn("Ana").open("/").sees("No folder is set").check("machines-companion")
		b.click("Set a folder for Workshop").sees("Folder for programs on Workshop", "asks nobody").check("folder")
		b.fill("Folder, as the computer names it", "/nowhere").click("Set the folder").sees("does not offer the folder /nowhere").check("folder-wrong")
		b.fill("Folder, as the computer names it", "/home/ana/work").click("Set the folder").sees("Programs on Workshop work in /home/ana/work from now on.", "Programs work in /home/ana/work.").check("machines-folder")
		b.click("Change the folder of Workshop").click("Leave it").sees("Programs work in /home/ana/work.")
	})
}
