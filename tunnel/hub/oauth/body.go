package oauth

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
)

// answering writes what a handler of the AutoGPT shape returns: a value as
// JSON, a failure as {"detail": …}, nothing when the handler has answered.
func answering(do func(http.ResponseWriter, *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := do(w, r)
		status := http.StatusOK
		if err != nil {
			f := failure{http.StatusInternalServerError, brokenDetail}
			errors.As(err, &f)
			status, v = f.status, map[string]any{"detail": f.detail}
			if status == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", "60")
			}
		}
		if v == nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	})
}

// fieldError is one entry of the detail of a 422, as AutoGPT's server words it.
type fieldError struct {
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
	Type string   `json:"type"`
}

// body is a request's fields, from a form or from a JSON object. Reading a
// field notes what is wrong with it; err tells all of it.
type body struct {
	fields map[string]any // string, []string, or another type that is wrong
	wrongs []fieldError
}

func isJSON(r *http.Request) bool {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return kind == "application/json"
}

// readBody takes application/json and application/x-www-form-urlencoded.
func readBody(r *http.Request) (*body, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return nil, detail(http.StatusRequestEntityTooLarge, "The body is too large")
		}
		return nil, detail(http.StatusBadRequest, "The body could not be read")
	}
	b := &body{fields: map[string]any{}}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		// A value that is no object leaves the map nil.
		if err := json.Unmarshal(data, &b.fields); err != nil || b.fields == nil {
			return nil, malformed("The body is not a JSON object", "json_invalid")
		}
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(data))
		if err != nil || twice(form) != "" {
			return nil, malformed("The form cannot be read, or has a field twice", "form_invalid")
		}
		for name, v := range form {
			b.fields[name] = v[0]
		}
	default:
		return nil, malformed("The body must be a form or JSON", "content_type_invalid")
	}
	return b, nil
}

func malformed(msg, kind string) error {
	return failure{http.StatusUnprocessableEntity, []fieldError{{Loc: []string{"body"}, Msg: msg, Type: kind}}}
}

func (b *body) wrong(name, msg, kind string) {
	b.wrongs = append(b.wrongs, fieldError{Loc: []string{"body", name}, Msg: msg, Type: kind})
}

// need is the string of a field that must be there and not be empty.
func (b *body) need(name string) string {
	s, ok := b.fields[name].(string)
	switch {
	case b.fields[name] == nil:
		b.wrong(name, "Field required", "missing")
	case !ok:
		b.wrong(name, "Input should be a valid string", "string_type")
	case s == "":
		b.wrong(name, "String should have at least 1 character", "string_too_short")
	}
	return s
}

// or is the string of a field that may be missing.
func (b *body) or(name, usual string) string {
	if b.fields[name] == nil {
		return usual
	}
	s, ok := b.fields[name].(string)
	if !ok {
		b.wrong(name, "Input should be a valid string", "string_type")
	}
	return s
}

// list is the strings of a field that must be there.
func (b *body) list(name string) []string {
	values, ok := b.fields[name].([]any)
	if b.fields[name] == nil {
		b.wrong(name, "Field required", "missing")
		return nil
	}
	out := make([]string, 0, len(values))
	for _, v := range values {
		s, isString := v.(string)
		ok = ok && isString
		out = append(out, s)
	}
	if !ok {
		b.wrong(name, "Input should be a list of strings", "list_type")
	}
	return out
}

// hint checks token_type_hint, which is not needed to find a token.
func (b *body) hint() {
	if !slices.Contains([]string{"access_token", "refresh_token"}, b.or("token_type_hint", "access_token")) {
		b.wrong("token_type_hint", "Input should be 'access_token' or 'refresh_token'", "literal_error")
	}
}

func (b *body) err() error {
	if len(b.wrongs) == 0 {
		return nil
	}
	return failure{http.StatusUnprocessableEntity, b.wrongs}
}
