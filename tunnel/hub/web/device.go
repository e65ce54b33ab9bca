package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	"localpc/tunnel/hub/limit"
	"localpc/tunnel/hub/store"
)

// A browser in which a person has logged in before keeps a device cookie
// (OWASP, "Slow down online guessing attacks with device cookies"): its wrong
// passwords are counted by themselves. Otherwise anybody who knows a name could
// shut its person out with wrong passwords, again and again.
//
// The cookie is a random id and a signature of it together with the name. It
// lets nobody in.

const (
	deviceCookie = "localpc_device"
	deviceFor    = 365 * 24 * 60 * 60 // seconds
)

// device is the id of r's browser if the person of that name has logged in with
// it before; else "".
func (f *Face) device(r *http.Request, name string) string {
	cookie, err := r.Cookie(f.cookiePrefix + deviceCookie)
	if err != nil {
		return ""
	}
	id, _, _ := strings.Cut(cookie.Value, ".")
	if store.LoginName(name) == "" || len(id) > 64 || !hmac.Equal([]byte(cookie.Value), []byte(f.signDevice(id, name))) {
		return ""
	}
	return id
}

// signDevice is the value of the cookie.
func (f *Face) signDevice(id, name string) string {
	mac := hmac.New(sha256.New, f.deviceKey)
	mac.Write([]byte(id + "\x00" + store.LoginName(name)))
	return id + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// knowDevice notes in r's browser that the person has logged in with it.
func (f *Face) knowDevice(w http.ResponseWriter, r *http.Request, u store.User) {
	id := f.device(r, u.Name)
	if id == "" {
		id = rand.Text()
	}
	http.SetCookie(w, &http.Cookie{Name: f.cookiePrefix + deviceCookie, Value: f.signDevice(id, u.Name), Path: "/", MaxAge: deviceFor,
		HttpOnly: true, Secure: f.sessions.Cookie.Secure, SameSite: http.SameSiteLaxMode})
}

// guesses is where a wrong password of r for a name is counted: by the device,
// or by the name however it is written.
func (f *Face) guesses(r *http.Request, name string) (*limit.Limiter, string) {
	if id := f.device(r, name); id != "" {
		return f.devices, id
	}
	return f.names, store.LoginName(name)
}
