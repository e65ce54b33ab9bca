package web_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"localpc/tunnel/hub/store"
)

func TestSetUpWithAPassword(t *testing.T) {
	t.Parallel()
	bothSizes(t, func(t *testing.T, z size) {
		s := newSite(t)
		link, ok := s.web.SetupURL(t.Context())
		if !ok {
			t.Fatal("a new hub has no set-up link")
		}
		b := s.browser(z)
		b.open("/").sees("Set up this hub", "Set-up code").check("setup-code")
		b.fill("Set-up code", "0123456789abcdef").click("Go on").sees("does not set this hub up").check("setup-wrong")
		b.fill("Set-up code", link[strings.Index(link, "=")+1:]).click("Go on").sees("Your name").check("setup")
		b.fill("Your name", "Ana").fill("Password", "aaaaaaaaaaaaaa").click("Set up with this password").sees("too easy to guess")
		b.fill("Password", password).click("Set up with this password")
		b.sees("Welcome", "No computer is connected yet", "Log out").check("machines-none")
		b.open(link).sees("This hub is set up").check("setup-closed")
		if _, ok := s.web.SetupURL(t.Context()); ok {
			t.Error("a hub that is set up has a set-up link")
		}
		if u, err := s.store.Owner(t.Context()); err != nil || u.Name != "Ana" || !u.Password {
			t.Errorf("%+v, %v", u, err)
		}
	})
}

func TestSetUpAndLogInWithAPasskey(t *testing.T) {
	t.Parallel()
	bothSizes(t, func(t *testing.T, z size) {
		s := newSite(t)
		link, _ := s.web.SetupURL(t.Context())
		b := s.browser(z).passkeys(builtIn)
		b.open(link).press("Make a passkey").sees("The name is empty")
		b.fill("Your name", "Ana").click("Make a passkey").sees("Welcome", "Log out")
		b.click("Log out").sees("Log in with a passkey").check("login")
		b.click("Log in with a passkey").sees("No computer is connected yet")
		// A second one, on another device; the first may go then.
		keys, err := s.store.Passkeys(t.Context(), store.OwnerID)
		if err != nil || len(keys) != 1 || keys[0].LastUsed.IsZero() {
			t.Fatalf("%+v, %v", keys, err)
		}
		b.open("/account").sees("Passkeys").click("Remove the passkey " + keys[0].Name).sees("Remove the passkey").click("Remove").sees("your only way to log in")
		b.open("/account").press("Add a passkey").sees("This device has a passkey for this hub already.")
		b.passkeys(plugged)
		b.fill("Name of the new passkey", "Security key").click("Add a passkey").sees("The passkey is added.", "Security key").check("account-passkeys")
		b.click("Remove the passkey " + keys[0].Name).click("Remove").sees("The passkey is removed.")
		// One that the hub does not know any more opens nothing.
		left, err := s.store.Passkeys(t.Context(), store.OwnerID)
		if err != nil || len(left) != 1 || left[0].Name != "Security key" {
			t.Fatalf("%+v, %v", left, err)
		}
	})
}

func TestAForgottenPasskeyOpensNothing(t *testing.T) {
	t.Parallel()
	s := owned(t)
	b := s.browser(desk).passkeys(builtIn).logIn("Ana")
	b.open("/account").click("Add a passkey").sees("The passkey is added.")
	keys, err := s.store.Passkeys(t.Context(), store.OwnerID)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%+v, %v", keys, err)
	}
	if err := s.store.RemovePasskey(t.Context(), store.OwnerID, keys[0].ID); err != nil {
		t.Fatal(err)
	}
	b.click("Log out").click("Log in with a passkey").sees("That passkey is not known here.").seesNot("Log out")
}

func TestLogInWithAPassword(t *testing.T) {
	t.Parallel()
	bothSizes(t, func(t *testing.T, z size) {
		s := owned(t)
		b := s.browser(z)
		b.open("/keys").sees("Log in")
		b.fill("Name", "Ana").fill("Password", "not the right words").click("Log in").sees("do not belong together").check("login-wrong")
		wrong := b.text()
		b.fill("Name", "Nobody").fill("Password", "not the right words").click("Log in").sees("do not belong together")
		if got := b.text(); got != wrong {
			t.Errorf("a wrong name reads otherwise than a wrong password:\n%s\n%s", got, wrong)
		}
		// The log-in leads to the page that was asked for.
		b.fill("Name", "ana").fill("Password", password).click("Log in").sees("Make a key")
		b.click("Log out").sees("Log in")
		b.open("/account").sees("Log in").seesNot("Log out")
	})
}

func TestTooManyPasswords(t *testing.T) {
	t.Parallel()
	s := owned(t)
	b := s.browser(desk).open("/login")
	for range 9 {
		s.caller().post("/login", url.Values{"name": {"Ana"}, "password": {"not the right words"}})
	}
	b.fill("Name", "Ana").fill("Password", "not the right words").click("Log in").sees("do not belong together")
	b.fill("Name", "Ana").fill("Password", password).click("Log in").sees("There were too many tries. Wait ten minutes").check("login-limit")
	s.pass(11 * time.Minute)
	b.fill("Name", "Ana").fill("Password", password).click("Log in").sees("Log out")
}

func TestConnectThroughTheBrowser(t *testing.T) {
	t.Parallel()
	bothSizes(t, func(t *testing.T, z size) {
		s, p := owned(t), newProgram(t)
		b := s.browser(z)
		// Not logged in: the log-in leads back to the request.
		b.open(s.asks(p.redirect, "m1", "Workshop PC", "4711")).sees("Log in")
		b.fill("Name", "Ana").fill("Password", password).click("Log in")
		b.sees("Connect this computer?", "Workshop PC", "Debian GNU/Linux 12, x86_64", "127.0.0.1", "4711").check("pair")
		at := b.url()
		b.click("Yes, connect this computer").sees("You can close this page.")
		answer := <-p.answers
		if answer.Get("code") == "" || answer.Get("state") != "a-state-of-the-program" {
			t.Errorf("the program got %v", answer)
		}
		b.open(at).sees("This request has ended").check("pair-ended")

		b.open(s.asks(p.redirect, "m1", "Workshop PC", "4711")).sees("4711").click("No").sees("You can close this page.")
		if answer := <-p.answers; answer.Get("error") != "access_denied" || answer.Get("code") != "" {
			t.Errorf("the program got %v", answer)
		}
	})
}

// The existing companion of AutoGPT has no code to compare, and waits at a
// name, not a number.
func TestConnectACompanion(t *testing.T) {
	t.Parallel()
	s, p := owned(t), programAt(t, "127.0.0.1:41907")
	b := s.browser(desk).logIn("Ana")
	b.open("/auth/authorize?" + url.Values{"response_type": {"code"}, "client_id": {"autogpt-local-executor"}, "redirect_uri": {"http://localhost:41907/callback"},
		"scope": {"USE_TOOLS"}, "state": {"a-state-of-the-program"}, "code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"}}.Encode())
	b.sees("Connect this computer?", "AutoGPT", "shows no number to compare").check("pair-companion")
	b.click("Yes, connect this computer").sees("You can close this page.")
	if answer := <-p.answers; answer.Get("code") == "" || answer.Get("state") != "a-state-of-the-program" {
		t.Errorf("the companion got %v", answer)
	}
}

func TestConnectWithACode(t *testing.T) {
	t.Parallel()
	bothSizes(t, func(t *testing.T, z size) {
		s := owned(t)
		b := s.browser(z).logIn("Ana")
		b.open("/pair").sees("Connect a computer", "localpc pair "+s.url).check("code")
		b.fill("Code", "BBBB-BBBB").click("Go on").sees("No computer shows that code.").check("code-wrong")
		b.fill("Code", strings.ToLower(s.device("m2", "Attic Pi"))).click("Go on").sees("Connect this computer?", "Attic Pi", "Raspberry Pi OS, arm64", "127.0.0.1").check("pair-device")
		at := b.url()
		b.click("Yes, connect this computer").sees("Tick that you started this on that computer.").check("pair-untick")
		b.tick("I started this on that computer").click("Yes, connect this computer").sees("Attic Pi is connected", "You can close this page.").check("pair-done")
		b.open(at).sees("This request has ended")

		b.open("/pair").fill("Code", s.device("m3", "Another")).click("Go on").sees("Another").click("No").sees("Nothing was connected").check("pair-no")

		// Its time runs out between the code and the answer.
		code := s.device("m4", "Slow")
		b.open("/pair").fill("Code", code).click("Go on").sees("Slow")
		s.pass(11 * time.Minute)
		b.tick("I started this on that computer").click("Yes, connect this computer").sees("This request has ended", "Start again on the computer")
		b.open("/pair").fill("Code", code).click("Go on").sees("No computer shows that code.")
	})
}

func TestTooManyCodes(t *testing.T) {
	t.Parallel()
	s := owned(t)
	b := s.browser(desk).logIn("Ana").open("/pair")
	c := s.caller().logIn("Ana")
	for range 9 {
		c.post("/pair", url.Values{"code": {"BBBB-BBBB"}})
	}
	b.fill("Code", "BBBB-BBBB").click("Go on").sees("No computer shows that code.")
	b.fill("Code", "BBBB-BBBB").click("Go on").sees("There were too many wrong codes from here.").check("code-limit")
}

// A link to a request that was begun with a typed code leads nowhere: nobody
// can be talked into approving one.
func TestALinkToACodeLeadsNowhere(t *testing.T) {
	t.Parallel()
	s := owned(t)
	a := s.browser(desk).logIn("Ana")
	a.open("/pair").fill("Code", s.device("m2", "Attic Pi")).click("Go on").sees("Attic Pi")
	s.browser(desk).logIn("Ana").open(a.url()).sees("This request has ended")
	a.tick("I started this").click("Yes, connect this computer").sees("Attic Pi is connected")
}

func TestAComputerOfSomebodyElse(t *testing.T) {
	t.Parallel()
	s, p := owned(t), newProgram(t)
	bo := s.member("Bo")
	s.machine(bo.ID, "m1", "Bo's PC", true)
	b := s.browser(desk).logIn("Ana").open(s.asks(p.redirect, "m1", "Bo's PC", "4711")).sees("4711")
	b.click("Yes, connect this computer").sees("This computer is somebody else's", "That computer belongs to another person of this hub.", "They have to disconnect it first").check("pair-taken")
	if list, err := s.store.Machines(t.Context(), store.OwnerID); err != nil || len(list) != 0 {
		t.Errorf("Ana has %+v, %v", list, err)
	}
}

func TestMachines(t *testing.T) {
	t.Parallel()
	bothSizes(t, func(t *testing.T, z size) {
		s := owned(t)
		s.machine(store.OwnerID, "m-on", "Workshop PC", true)
		s.machine(store.OwnerID, "m-off", "Old laptop \u202egnp.exe <b>bold</b>", false)
		bo := s.member("Bo")
		s.machine(bo.ID, "m-bo", "Bo's PC", true)
		b := s.browser(z).logIn("Ana").open("/")
		b.sees("Workshop PC", "Online", "Offline", "Linux, x86_64", "last seen just now", "Commands", `Old laptop \u202egnp.exe <b>bold</b>`).seesNot("Bo's PC", "session").check("machines")
		b.click("Disconnect Workshop PC").sees("Disconnect Workshop PC?").check("disconnect")
		b.click("Keep it").sees("Workshop PC", "Online")
		b.click("Disconnect Workshop PC").click("Disconnect").sees("Workshop PC is disconnected.").check("machines-after")
		b.sees("Sign-in needed", "Sign in again")
		b.click("Remove Workshop PC").sees("Remove Workshop PC from the list?").click("Remove").sees("is removed from the list.")
		if list, err := s.store.Machines(t.Context(), store.OwnerID); err != nil || len(list) != 1 || list[0].ID != "m-off" {
			t.Errorf("%+v, %v", list, err)
		}
		if s.checks == 0 {
			t.Error("the hub was not told to look again")
		}
		b.open("/machines/m-bo/disconnect").sees("There is nothing here").check("nothing")
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	bothSizes(t, func(t *testing.T, z size) {
		s := owned(t)
		b := s.browser(z).logIn("Ana").open("/keys").sees("There is no key yet.").check("keys-none")
		b.fill("Name of the program", "Claude <Desktop>").click("Make a key")
		b.sees("The key of Claude <Desktop>", "E2B_API_URL="+s.url+"/api", "E2B_SANDBOX_URL="+s.url+"/sbx", s.url+"/mcp").check("keys-new")
		secret := js[string](b, `document.getElementById("secret").textContent`)
		b.sees("Authorization: Bearer " + secret)
		k, err := s.store.FindKey(t.Context(), secret)
		if err != nil || k.User != store.OwnerID || k.Name != "Claude <Desktop>" {
			t.Fatalf("%+v, %v", k, err)
		}
		b.open("/keys").sees("Claude <Desktop>", secret[:8]+"…").seesNot(secret).check("keys")
		b.click("Revoke the key of Claude <Desktop>").sees("Revoke the key of").check("revoke").click("Revoke").sees("is revoked.", "There is no key yet.")
		if _, err := s.store.FindKey(t.Context(), secret); err == nil {
			t.Error("a revoked key is good")
		}
		b.fill("Name of the program", "   ").click("Make a key").sees("The name is empty").check("keys-wrong")
	})
}

func TestPeople(t *testing.T) {
	t.Parallel()
	bothSizes(t, func(t *testing.T, z size) {
		s := owned(t)
		b := s.browser(z).logIn("Ana").open("/people").sees("Ana (you)").check("people")
		b.fill("Their name", "ana").click("Make an invitation").sees("has that name already")
		b.fill("Their name", "Bo").click("Make an invitation").sees("The link for Bo", "Has a link to use").check("people-new")
		link := js[string](b, `document.getElementById("link").textContent`)

		other := s.browser(z).open(link).sees("You are invited as Bo").check("join")
		other.fill("Password", password).click("Use this password").sees("Welcome", "No computer is connected yet").seesNot("People")
		other.open("/people").sees("There is nothing here")
		s.browser(z).open(link).sees("This link is not good any more").check("join-used")

		b.open("/people").click("Reset Bo").sees("Reset how Bo logs in?").check("reset").click("Make the link").sees("The link for Bo")
		link = js[string](b, `document.getElementById("link").textContent`)
		other.open("/").sees("Log in").seesNot("Log out")
		other.fill("Name", "Bo").fill("Password", password).click("Log in").sees("do not belong together")
		other.open(link).sees("Choose how you log in").check("reset-choose").fill("Password", "another quiet harbour").click("Use this password").sees("From now on you log in")

		b.open("/people").click("Remove Bo").sees("Remove Bo?").click("Remove").sees("Bo is removed.").seesNot("Reset")
		other.open("/").sees("Log in").seesNot("Log out")
	})
}

func TestAccount(t *testing.T) {
	t.Parallel()
	bothSizes(t, func(t *testing.T, z size) {
		s, p := owned(t), newProgram(t)
		other := s.browser(z).logIn("Ana")
		third := s.browser(z).logIn("Ana")
		b := s.browser(z).logIn("Ana")
		b.open(s.asks(p.redirect, "m1", "Workshop PC", "4711")).sees("4711").click("Yes, connect this computer").sees("close this page")
		s.redeem(p.redirect, (<-p.answers).Get("code"))
		b.open("/account").sees("Where you are logged in", "This browser", "Workshop PC", "from 127.0.0.1").check("account")
		b.click("End the sign-in of Workshop PC").check("signin-end").click("End it").sees("The sign-in has ended.", "No computer has signed in")
		if list, err := s.store.SignIns(t.Context(), ""); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
		b.click(js[string](b, `document.querySelector("form[action='/account/browsers/end'] button").getAttribute("aria-label")`)).sees("you are logged out there")
		third.open("/")
		other.open("/")
		if a, c := strings.Contains(third.text(), "Log out"), strings.Contains(other.text(), "Log out"); a == c {
			t.Errorf("of two other browsers, not one is logged out: %v, %v", a, c)
		}
		b.fill("The password you have now", "not the right words").fill("New password", "another quiet harbour").click("Change the password").sees("Nothing was changed.").check("account-wrong")
		b.fill("The password you have now", password).fill("New password", "another quiet harbour").click("Change the password").sees("The password is changed.")
		other.open("/").sees("Log in").seesNot("Log out")
		third.open("/").sees("Log in").seesNot("Log out")
		b.open("/account").sees("This browser")

		// A browser left open changes nothing about who can log in.
		s.pass(time.Hour)
		b.fill("The password you have now", "another quiet harbour").fill("New password", "a third quiet harbour").click("Change the password").sees("Log in again first").check("login-again")
		b.fill("Name", "Ana").fill("Password", "another quiet harbour").click("Log in").sees("Where you are logged in")
		b.fill("The password you have now", "another quiet harbour").fill("New password", "a third quiet harbour").click("Change the password").sees("The password is changed.")
	})
}

func TestByKeyboardOnly(t *testing.T) {
	t.Parallel()
	s, p := owned(t), newProgram(t)
	b := s.browser(desk).open(s.asks(p.redirect, "m1", "Workshop PC", "4711")).sees("Log in")
	b.tabTo("Skip to the content").key(kb.Enter)
	b.tabTo("Name").key("Ana").tabTo("Password").key(password).key(kb.Enter).sees("4711")
	// Enter on its own approves nothing.
	b.key(kb.Enter)
	b.tabTo("Yes, connect this computer").key(" ").sees("You can close this page.")
	if answer := <-p.answers; answer.Get("code") == "" {
		t.Errorf("the program got %v", answer)
	}
}

// Without scripts everything works but passkeys, which are not offered.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	s := owned(t)
	b := s.browser(desk).withoutScripts().open("/login").sees("Log in").seesNot("passkey.", "with a passkey")
	b.fill("Name", "Ana").fill("Password", password).click("Log in")
	b.open("/pair").fill("Code", s.device("m2", "Attic Pi")).click("Go on")
	b.tick("I started this on that computer").click("Yes, connect this computer")
	b.click("See your machines").open("/keys").fill("Name of the program", "Script").click("Make a key")
	if keys, err := s.store.Keys(t.Context(), store.OwnerID); err != nil || len(keys) != 1 {
		t.Errorf("%+v, %v", keys, err)
	}
}
