// SPDX-License-Identifier: MIT OR Apache-2.0

use proptest::prelude::*;

use super::*;

const WHOLE: &str =
    "# of a machine\nmm_costs 1\n\nfault 1300 # measured\n  split 0\nend 2 # that is all\n";

fn says(text: &str) -> String {
    parse(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn a_file_has_names_numbers_and_where_they_come_from() {
    let costs = parse(WHOLE.as_bytes()).unwrap();
    let [fault, split] = &costs[..] else {
        panic!("{costs:?}")
    };
    assert_eq!(
        (fault.name.as_str(), fault.ns, fault.line),
        ("fault", 1300, 4)
    );
    assert_eq!(
        (fault.source.as_str(), split.source.as_str()),
        ("measured", "")
    );
    assert_eq!((split.ns, split.line), (0, 5));
}

#[test]
fn nonsense_is_named_with_its_line() {
    for (text, part) in [
        (
            "mm_costs 1\nfault\nend 1\n",
            "line 2: it is not a name and a number",
        ),
        (
            "mm_costs 1\nfault 1 2\nend 1\n",
            "line 2: it is not a name and a number",
        ),
        (
            "mm_costs 1\nfault 12x\nend 1\n",
            "line 2: \"12x\" is no number",
        ),
        (
            "mm_costs 1\nfault -1\nend 1\n",
            "line 2: \"-1\" is no number",
        ),
        (
            "mm_costs 1\nfault +1\nend 1\n",
            "line 2: \"+1\" is no number",
        ),
        (
            "mm_costs 1\nfault 18446744073709551616\nend 1\n",
            "is no number",
        ),
        (
            "mm_costs 1\n../mode 1\nend 1\n",
            "line 2: \"../mode\" is no name",
        ),
        (
            "mm_costs 1\nfrozen 1\nend 1\n",
            "line 2: \"frozen\" is no name",
        ),
        (
            "mm_costs 1\nfault 1\nfault 2\nend 2\n",
            "line 3: fault has a cost already",
        ),
        (
            "mm_costs 1\nfault 1\nend 1\nsplit 2\n",
            "line 4: it stands behind the end",
        ),
        (
            "mm_costs 1\nfault 1\nend 2\n",
            "says \"2\" costs and holds 1",
        ),
        ("mm_costs 1\nfault 1\n", "the end, is missing"),
        (
            "mm_costs 2\nend 0\n",
            "version 2; this build reads version 1",
        ),
        ("mm_costs x\nend 0\n", "\"x\" is no version"),
        ("mm_profile 1\nend 0\n", "does not begin with `mm_costs 1`"),
        ("", "does not begin with `mm_costs 1`"),
    ] {
        assert!(says(text).contains(part), "{text:?}: {}", says(text));
    }
    assert!(parse(b"\xff").is_err());
}

#[test]
fn every_preset_is_one() {
    for (name, _) in SHIPPED {
        let costs = shipped(name).unwrap();
        assert!(costs.len() >= 8);
        assert!(costs.iter().all(|cost| !cost.source.is_empty()), "{name}");
    }
    assert_eq!(shipped("nothing"), None);
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(numbers in prop::collection::vec(any::<u64>(), 0..20)) {
        let costs: Vec<Cost> = numbers
            .iter()
            .enumerate()
            .map(|(index, ns)| Cost {
                name: format!("cost_{index}"),
                ns: *ns,
                source: format!("measured {index} times"),
                line: index + 3,
            })
            .collect();
        prop_assert_eq!(parse(format("a machine", &costs).as_bytes()).unwrap(), costs);
    }

    #[test]
    fn no_text_panics(text in "(mm_costs 1\n)?[a-z0-9_#\\. \n]{0,60}") {
        let _ = parse(text.as_bytes());
    }
}
