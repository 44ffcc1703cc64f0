package lot

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/structpb"
)

// maxWhole: up to it, and down to its negative, a double has every whole number exactly.
const maxWhole = 1<<53 - 1

// maxDepth of Structs and lists in one another, as the contract has it.
const maxDepth = 16

var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// NewStruct makes a Struct of JSON: nil, bools, strings, numbers, slices and maps with string keys,
// of any named type. Unlike structpb.NewStruct it takes no value that would come back as another one:
// the error names the path to a whole number beyond ±(1<<53 - 1), NaN or an infinity, a text that is
// not UTF-8 or has a NUL, bytes, a time.Time, any other struct, pointer, channel or func, and what is
// nested more than 16 deep. A json.Number is a whole number or, with a fraction or exponent, a double.
func NewStruct(values map[string]any) (*structpb.Struct, error) {
	return newStruct(reflect.ValueOf(values), 1)
}

// NewValue makes a Value of JSON, as NewStruct does; nil is JSON's null.
func NewValue(value any) (*structpb.Value, error) {
	return newValue(reflect.ValueOf(value), 0)
}

// AsMap gives what a Struct holds. Whole numbers are int64, beyond ±(1<<53 - 1) float64, as they may
// have been rounded there; lists are []any, Structs map[string]any.
func AsMap(values *structpb.Struct) map[string]any {
	made := make(map[string]any, len(values.GetFields()))
	for key, value := range values.GetFields() {
		made[key] = AsAny(value)
	}
	return made
}

// AsAny gives what a Value holds, as AsMap does; nil is JSON's null.
func AsAny(value *structpb.Value) any {
	switch kind := value.GetKind().(type) {
	case *structpb.Value_BoolValue:
		return kind.BoolValue
	case *structpb.Value_StringValue:
		return kind.StringValue
	case *structpb.Value_NumberValue:
		number := kind.NumberValue
		negativeZero := number == 0 && math.Signbit(number)
		if number == math.Trunc(number) && math.Abs(number) <= maxWhole && !negativeZero {
			return int64(number)
		}
		return number
	case *structpb.Value_StructValue:
		return AsMap(kind.StructValue)
	case *structpb.Value_ListValue:
		made := make([]any, len(kind.ListValue.GetValues()))
		for i, item := range kind.ListValue.GetValues() {
			made[i] = AsAny(item)
		}
		return made
	}
	return nil
}

// refusal is what is wrong with a value; the steps to it are put in front on the way out.
type refusal struct{ path, text string }

func (r *refusal) Error() string {
	path := strings.TrimPrefix(r.path, ".")
	if path == "" {
		path = "the value"
	}
	return "lot: " + path + " " + r.text
}

func refuse(format string, args ...any) error {
	return &refusal{text: fmt.Sprintf(format, args...)}
}

func at(step string, err error) error {
	var found *refusal
	if errors.As(err, &found) {
		found.path = step + found.path
	}
	return err
}

func newStruct(values reflect.Value, depth int) (*structpb.Struct, error) {
	if depth > maxDepth {
		return nil, refuse("must be nested at most %d deep", maxDepth)
	}
	made := &structpb.Struct{Fields: make(map[string]*structpb.Value, values.Len())}
	for entries := values.MapRange(); entries.Next(); {
		key := entries.Key().String()
		step := "." + key
		if !fieldName.MatchString(key) {
			step = fmt.Sprintf("[%q]", key)
		}
		if err := checkText(key); err != nil {
			return nil, at(step, err)
		}
		value, err := newValue(entries.Value(), depth)
		if err != nil {
			return nil, at(step, err)
		}
		made.Fields[key] = value
	}
	return made, nil
}

func newList(values reflect.Value, depth int) (*structpb.ListValue, error) {
	if depth > maxDepth {
		return nil, refuse("must be nested at most %d deep", maxDepth)
	}
	made := &structpb.ListValue{Values: make([]*structpb.Value, values.Len())}
	for i := range made.Values {
		value, err := newValue(values.Index(i), depth)
		if err != nil {
			return nil, at(fmt.Sprintf("[%d]", i), err)
		}
		made.Values[i] = value
	}
	return made, nil
}

// newValue of a value that lies in depth Structs and lists.
func newValue(value reflect.Value, depth int) (*structpb.Value, error) {
	if value.IsValid() && value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	if !value.IsValid() {
		return structpb.NewNullValue(), nil
	}
	if number, ok := value.Interface().(json.Number); ok {
		return newNumber(number)
	}
	switch value.Kind() {
	case reflect.Bool:
		return structpb.NewBoolValue(value.Bool()), nil
	case reflect.String:
		if err := checkText(value.String()); err != nil {
			return nil, err
		}
		return structpb.NewStringValue(value.String()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		number := value.Int()
		if number < -maxWhole || number > maxWhole {
			return nil, rounded(number)
		}
		return structpb.NewNumberValue(float64(number)), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		number := value.Uint()
		if number > maxWhole {
			return nil, rounded(number)
		}
		return structpb.NewNumberValue(float64(number)), nil
	case reflect.Float32, reflect.Float64:
		number := value.Float()
		if math.IsNaN(number) || math.IsInf(number, 0) {
			return nil, refuse("is %v; it must be neither NaN nor infinity", number)
		}
		return structpb.NewNumberValue(number), nil
	case reflect.Slice, reflect.Array:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return nil, refuse("is bytes, which are not JSON; encode them as text, for example with base64")
		}
		list, err := newList(value, depth+1)
		if err != nil {
			return nil, err
		}
		return structpb.NewListValue(list), nil
	case reflect.Map:
		if value.Type().Key().Kind() != reflect.String {
			return nil, refuse("has keys of type %v; they must be strings", value.Type().Key())
		}
		fields, err := newStruct(value, depth+1)
		if err != nil {
			return nil, err
		}
		return structpb.NewStructValue(fields), nil
	}
	if _, ok := value.Interface().(time.Time); ok {
		return nil, refuse("is a time.Time, which is not JSON; give its Format(time.RFC3339Nano)")
	}
	return nil, refuse("is a %v, which is not JSON; give a string, a number, a slice or a map", value.Type())
}

func newNumber(number json.Number) (*structpb.Value, error) {
	double, err := number.Float64()
	if err != nil || math.IsNaN(double) || math.IsInf(double, 0) {
		return nil, refuse("is %q, which is not a number that a double can hold", number.String())
	}
	if !strings.ContainsAny(number.String(), ".eE") && math.Abs(double) > maxWhole {
		return nil, rounded(number)
	}
	return structpb.NewNumberValue(double), nil
}

func rounded(number any) error {
	return refuse(
		"is %v, beyond ±(1<<53 - 1), where a double rounds whole numbers; give it as a string, or as a "+
			"float64 if it may be rounded", number,
	)
}

func checkText(text string) error {
	if !utf8.ValidString(text) {
		return refuse("is not UTF-8; use strings.ToValidUTF8")
	}
	if strings.Contains(text, "\x00") {
		return refuse("must not contain NUL (U+0000)")
	}
	return nil
}
