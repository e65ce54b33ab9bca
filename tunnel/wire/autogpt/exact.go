package autogpt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"localpc/tunnel/wire"
)

// missing tells which required field of a payload is not there or null.
func missing(raw json.RawMessage, payload wire.Payload) error {
	t := reflect.TypeOf(payload).Elem()
	if t.Kind() != reflect.Struct {
		return nil
	}
	var there map[string]json.RawMessage
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("need") == "" {
			continue
		}
		if there == nil {
			if err := json.Unmarshal(raw, &there); err != nil {
				return errors.New("not an object")
			}
		}
		if v, ok := there[fieldName(f)]; !ok || isNull(v) {
			return fmt.Errorf("%s is missing", fieldName(f))
		}
	}
	return nil
}

func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Exact tells whether a frame is what the existing other end takes, or sends,
// to the letter. Toward the machine that is what the companion's models allow:
// ts is there, no field is unknown, required ones are there, nulls stand only
// where they may. Toward the hub it is what the companion writes: every field,
// nulls and defaults too, and no other. For tests, and for a strict hub.
func Exact(data []byte, dir wire.Direction) error {
	m, err := Decode(data, dir)
	if err != nil {
		return err
	}
	var env map[string]json.RawMessage
	if err := json.Unmarshal(data, &env); err != nil {
		return err
	}
	allowed := []string{"type", "id", "ts", "version", "payload"}
	if dir == wire.ToHub {
		allowed = append(allowed, "pending_capacity")
	}
	for name := range env {
		if !slices.Contains(allowed, name) && name != "pending_capacity" {
			return fmt.Errorf("frame %s: the envelope has the unknown field %q", m.Type, name)
		}
	}
	for _, name := range allowed {
		if raw, ok := env[name]; !ok && (dir == wire.ToHub || name != "version") || isNull(raw) && name != "pending_capacity" {
			return fmt.Errorf("frame %s: the envelope has no %s", m.Type, name)
		}
	}
	var ts float64
	if json.Unmarshal(env["ts"], &ts) != nil {
		return fmt.Errorf("frame %s: ts is not a number", m.Type)
	}
	if raw, ok := env["pending_capacity"]; ok && dir == wire.ToMachine && !isNull(raw) {
		return fmt.Errorf("frame %s: a hub sends no pending_capacity", m.Type)
	}
	if err := exact(env["payload"], reflect.TypeOf(m.Payload).Elem(), dir, "payload"); err != nil {
		return fmt.Errorf("frame %s: %w", m.Type, err)
	}
	return nil
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// exact holds one value against the Go type that describes it.
func exact(raw json.RawMessage, t reflect.Type, dir wire.Direction, at string) error {
	if isNull(raw) {
		if nullable(t) {
			return nil
		}
		return fmt.Errorf("%s must not be null", at)
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[Resolution]():
		t = reflect.TypeFor[Pair]() // malformed is not null here
	case t.Kind() == reflect.Slice:
		var all []json.RawMessage
		if err := json.Unmarshal(raw, &all); err != nil {
			return fmt.Errorf("%s must be an array", at)
		}
		for i, one := range all {
			if err := exact(one, t.Elem(), dir, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
		return nil
	case t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(unmarshaler):
		return exactObject(raw, t, dir, at)
	case t.Kind() == reflect.Interface || t.Kind() == reflect.Struct:
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(reflect.New(t).Interface()); err != nil {
		return fmt.Errorf("%s has another type", at)
	}
	return nil
}

func exactObject(raw json.RawMessage, t reflect.Type, dir wire.Direction, at string) error {
	var there map[string]json.RawMessage
	if err := json.Unmarshal(raw, &there); err != nil {
		return fmt.Errorf("%s must be an object", at)
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name := fieldName(f)
		value, ok := there[name]
		delete(there, name)
		switch {
		case !ok && (dir == wire.ToHub || f.Tag.Get("need") != ""):
			return fmt.Errorf("%s.%s is missing", at, name)
		case !ok:
			continue
		}
		if err := exact(value, f.Type, dir, at+"."+name); err != nil {
			return err
		}
	}
	for name := range there {
		return fmt.Errorf("%s has the unknown field %q", at, name)
	}
	return nil
}

// nullable: pointers, plain slices and plain maps may be null, the named List
// and Map never.
func nullable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface:
		return true
	case reflect.Slice, reflect.Map:
		return t.Name() == ""
	}
	return false
}
