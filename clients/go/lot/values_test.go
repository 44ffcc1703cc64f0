package lot_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lot-grpc/lot-grpc/clients/go/lot"
	lotv1 "github.com/lot-grpc/lot-grpc/clients/go/lot/v1"
	"google.golang.org/protobuf/types/known/structpb"
)

const safe = 1<<53 - 1

type level int

type name string

func TestWholeNumbersComeBackAsSuch(t *testing.T) {
	given := map[string]any{
		"port": 8080, "level": level(3), "byte": uint8(7), "safe": int64(safe), "least": int64(-safe),
		"unsigned": uint64(safe), "share": 0.1, "single": float32(0.5), "big": 1.5e18, "minus": math.Copysign(0, -1),
		"number": json.Number("4"), "exponent": json.Number("1e3"), "fraction": json.Number("0.1"),
		"list": []any{1, nil, true, "é"}, "ints": []int{1, 2}, "names": map[name]name{"odd key": "b"}, "none": map[string]any(nil),
	}
	kept := map[string]any{
		"port": int64(8080), "level": int64(3), "byte": int64(7), "safe": int64(safe), "least": int64(-safe),
		"unsigned": int64(safe), "share": 0.1, "single": 0.5, "big": 1.5e18, "minus": math.Copysign(0, -1),
		"number": int64(4), "exponent": int64(1000), "fraction": 0.1,
		"list": []any{int64(1), nil, true, "é"}, "ints": []any{int64(1), int64(2)}, "names": map[string]any{"odd key": "b"}, "none": map[string]any{},
	}
	made := must(lot.NewStruct(given))(t)

	if got := lot.AsMap(made); !reflect.DeepEqual(got, kept) {
		t.Errorf("got %v", got)
	}
	if got := lot.AsAny(must(lot.NewValue(given))(t)); !reflect.DeepEqual(got, kept) {
		t.Errorf("got %v", got)
	}
	if !math.Signbit(lot.AsMap(made)["minus"].(float64)) {
		t.Error("-0 lost its sign")
	}
	if lot.AsAny(nil) != nil || len(lot.AsMap(nil)) != 0 {
		t.Error("nothing is not nothing")
	}
}

func TestWhatWouldComeBackOtherwiseIsRefusedByItsPath(t *testing.T) {
	endless := []any{nil}
	endless[0] = endless
	for text, value := range map[string]any{
		"10157896543210987, beyond":    int64(10157896543210987),
		"-9007199254740992, beyond":    -safe - 1,
		"18446744073709551615, beyond": uint64(math.MaxUint64),
		"10157896543210988, beyond":    json.Number("10157896543210988"),
		`"1e400"`:                      json.Number("1e400"),
		`"NaN"`:                        json.Number("NaN"),
		`"four"`:                       json.Number("four"),
		"is NaN":                       math.NaN(),
		"is -Inf":                      float32(math.Inf(-1)),
		"Format(time.RFC3339Nano)":     time.Now(),
		"with base64":                  []byte("abc"),
		"is bytes":                     [3]byte{},
		"keys of type int":             map[int]string{1: "a"},
		"is a struct":                  struct{ A int }{1},
		"is a *int":                    new(int),
		"is a complex128":              1i,
		"is a func":                    func() {},
		"is not UTF-8":                 "\xff",
		"NUL":                          "a\x00b",
		"at most 16 deep":              endless,
	} {
		_, err := lot.NewStruct(map[string]any{"ids": []any{0, map[string]any{"odd key": value}}})
		if err == nil || !strings.HasPrefix(err.Error(), `lot: ids[1]["odd key"]`) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: got %v", value, err)
		}
	}
	for _, key := range []string{"\xff", "a\x00b"} {
		if _, err := lot.NewStruct(map[string]any{key: 1}); err == nil {
			t.Errorf("the key %q was taken", key)
		}
	}
}

func TestNumbersComeBackFromAServerAsTheyWereGiven(t *testing.T) {
	ctx, client := dial(t)
	given := map[string]any{"port": int64(8080), "share": 0.1, "big": 1.5e18, "safe": int64(safe), "list": []any{int64(1), -2.5}}
	args := must(lot.NewStruct(given))(t)
	saved := must(client.Patterns.SavePattern(ctx, &lotv1.SavePatternRequest{
		Pattern: &lotv1.Pattern{Task: "Start it", Actions: []*lotv1.Action{{Tool: "run", Args: args}}},
	}))(t)
	must(client.Memories.PutPreference(ctx, &lotv1.PutPreferenceRequest{Key: "port", Value: structpb.NewNumberValue(8080)}))(t)
	found := must(client.Memories.GetPreference(ctx, &lotv1.GetPreferenceRequest{Key: "port"}))(t)

	if got := lot.AsMap(saved.GetPattern().GetActions()[0].GetArgs()); !reflect.DeepEqual(got, given) {
		t.Errorf("got %v", got)
	}
	if got := lot.AsAny(found.GetPreference().GetValue()); got != int64(8080) {
		t.Errorf("got %v", got)
	}
}
