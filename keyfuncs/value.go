package keyfuncs

import (
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/interlock-go/interlock/dedupe"
)

// Value returns the key function for a value of the request's context, such as the user that the
// authentication put there. Under Echo a string key also finds what c.Set stored. The text is
//   - of a string, an integer or a bool, or of a type made from one, its value, even if the type has
//     a String method: such methods may mask or merge what has to stay apart;
//   - of a float64 or float32 without a fraction, as decoded JSON has for integers, the integer;
//   - of any other [fmt.Stringer], such as a UUID, what String returns.
//
// A request without the value, or with "" or a nil pointer to a Stringer, has no key (""). Any other
// type is an error that names it, and so is a float that has a fraction or is too large to be
// exact. Those are mistakes of the program and are not shown to clients.
//
// Value panics if key is nil, "" or of a type that cannot be a context key.
func Value(key any) dedupe.KeyFunc {
	switch {
	case key == nil || !reflect.ValueOf(key).Comparable():
		panic(fmt.Sprintf("keyfuncs: Value(%T): not a context key; give the key under which the value is set", key))
	case key == "":
		panic(`keyfuncs: Value(""): give the key under which the value is set`)
	}
	return func(r dedupe.Request) (string, error) {
		value := r.Value(key)
		text, ok := textOf(value)
		if !ok {
			return "", fmt.Errorf("keyfuncs: Value(%s): a %T of this value cannot serve as a key", nameOf(key), value)
		}
		return text, nil
	}
}

// nameOf describes a context key: keys that are no strings are told apart by their types.
func nameOf(key any) string {
	if name, ok := key.(string); ok {
		return strconv.Quote(name)
	}
	return fmt.Sprintf("%T", key)
}

func textOf(value any) (text string, ok bool) {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return "", true
	case reflect.String:
		return v.String(), true
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10), true
	case reflect.Float32:
		return wholeNumber(v.Float(), 1<<24)
	case reflect.Float64:
		return wholeNumber(v.Float(), 1<<53)
	default: // what else there is has no text but its own
	}
	stringer, ok := value.(fmt.Stringer)
	if !ok {
		return "", false
	}
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return "", true
	}
	return stringer.String(), true
}

// wholeNumber formats f if it is an integer below limit, the first at which two integers may have
// become the same float.
func wholeNumber(f, limit float64) (text string, ok bool) {
	if f != math.Trunc(f) || math.Abs(f) >= limit {
		return "", false
	}
	return strconv.FormatInt(int64(f), 10), true
}
