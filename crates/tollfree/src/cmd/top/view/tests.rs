// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn view() -> View {
    View {
        rows: 100,
        page: 20,
        ..View::new(Duration::from_secs(1))
    }
}

fn press(view: &mut View, keys: &str) -> Option<Effect> {
    let key = |c| match c {
        '\n' => Key::Enter,
        '\x1b' => Key::Escape,
        '\x7f' => Key::Backspace,
        c => Key::Char(c),
    };
    keys.chars().map(|c| view.press(key(c))).last()
}

#[test]
fn moving_stays_within_the_rows() {
    let mut view = view();
    for (key, first) in [
        (Key::Up, 0),
        (Key::Down, 1),
        (Key::PageDown, 21),
        (Key::PageUp, 1),
        (Key::End, 80),
        (Key::PageDown, 80),
        (Key::Home, 0),
    ] {
        assert_eq!(view.press(key), Effect::Redraw);
        assert_eq!(view.first, first, "{key:?}");
    }
    view.rows = 3;
    view.press(Key::End);
    assert_eq!(view.first, 0);
}

#[test]
fn sorting_goes_round() {
    let mut view = view();
    press(&mut view, ">");
    assert_eq!(view.sort, Column::Cpu);
    press(&mut view, "<<");
    assert_eq!(view.sort, Column::Memory);
    press(&mut view, "s");
    assert_eq!(view.sort, Column::Lost);
}

#[test]
fn a_filter_is_typed_and_taken_or_not() {
    let mut view = view();
    press(&mut view, "/qp\x7f");
    assert_eq!(view.input, Some(Input::Filter("q".to_owned())));
    press(&mut view, "\n");
    assert_eq!((view.filter.as_str(), &view.input), ("q", &None));
    press(&mut view, "/x\x1b");
    assert_eq!(view.filter, "q");
}

#[test]
fn an_interval_that_is_none_changes_nothing() {
    let mut view = view();
    for (typed, millis) in [("i2.5s\n", 2500), ("isoon\n", 2500), ("i1ms\n", 2500)] {
        press(&mut view, typed);
        assert_eq!(view.interval, Duration::from_millis(millis), "{typed}");
    }
}

#[test]
fn q_ends_it_but_for_the_help() {
    let mut view = view();
    assert_eq!(press(&mut view, "hq"), Some(Effect::Redraw));
    assert!(!view.shows_help);
    press(&mut view, "h");
    view.press(Key::Down);
    assert_eq!((view.shows_help, view.first), (true, 1));
    assert_eq!(press(&mut view, "xq"), Some(Effect::End));
    assert_eq!(press(&mut view, "cpcp"), Some(Effect::Redraw));
    assert!(!view.is_paused && !view.shows_groups);
}
