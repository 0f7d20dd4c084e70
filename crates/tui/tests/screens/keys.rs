//! What keys and the mouse do.

use std::sync::Arc;

use tui::{Choices, Effect, Event, Key, Mouse, Press, Question, Screen, Selector, Sort};

use super::fixture::{Person, SNAPSHOT, pictured};

/// Nodes as the API calls them; lists leave out what all of them end in.
fn full(short: &str) -> String {
    format!("{short}.ec2.internal")
}

fn node(short: &str) -> Screen {
    Screen::Node(full(short))
}

#[test]
fn nodes_are_sorted_by_the_key_that_is_pressed_and_reversed() {
    let mut person = Person::new();
    person.press("N");
    let mut names = person.rows();
    let by_name = names.clone();
    names.sort();
    assert_eq!(names, by_name);
    person.press("S");
    names.reverse();
    assert_eq!(person.rows(), names);
    person.press("C");
    assert!(person.line("nodes 1").contains("sort cpu"));
    assert_eq!(
        person.rows().first().map(String::as_str),
        Some("ip-10-0-165-138"),
        "the emptiest"
    );
}

#[test]
fn a_filter_works_while_it_is_typed_and_esc_takes_it_back() {
    let mut person = Person::new();
    let all = person.rows().len();
    person.press("/pool=data");
    let data = person.rows();
    assert!(!data.is_empty() && data.len() < all, "{data:?}");
    person.press("<esc>");
    assert_eq!(person.rows().len(), all, "esc while typing takes it back");
    person.press("/pool=data<enter>");
    assert_eq!(person.rows(), data);
    let screen = person.screen();
    assert!(screen.contains(&format!("nodes {} of", data.len())), "{screen}");
    person.press("<esc>");
    assert_eq!(
        person.rows().len(),
        all,
        "esc clears the filter before it goes anywhere"
    );
}

#[test]
fn a_filter_that_means_nobody_says_so() {
    let mut person = Person::new();
    person.press("/nobody<enter>");
    assert!(person.line("no node is meant").contains("esc clears the filter"));
    person.press("<enter>x");
    assert_eq!(*person.app.screen(), Screen::Nodes, "nothing to open");
}

#[test]
fn enter_leads_into_a_node_and_its_pods_and_esc_all_the_way_back() {
    let mut person = Person::new();
    person.press("/2-84<enter><enter>");
    assert_eq!(*person.app.screen(), node("ip-10-0-2-84"));
    let screen = person.screen();
    for part in [
        "why it stays",
        "x pod",
        "x policy",
        "if removed",
        "what it takes",
        "its decisions",
    ] {
        assert!(screen.contains(part), "no {part} in\n{screen}");
    }
    person.press("<enter>");
    assert!(matches!(person.app.screen(), Screen::Text { title, .. } if title.starts_with("why pod ")));
    person.press("<esc>");
    assert_eq!(*person.app.screen(), node("ip-10-0-2-84"));
    person.press("<esc><esc><esc><esc>");
    assert_eq!(*person.app.screen(), Screen::Nodes);
    assert!(person.done.is_empty(), "esc never ends: {:?}", person.done);
}

#[test]
fn brackets_lead_to_the_neighbours_of_a_node() {
    let mut person = Person::new();
    person.press("N");
    let names = person.rows();
    person.press("gj<enter>]");
    assert_eq!(*person.app.screen(), node(&names[2]));
    person.press("[[");
    assert_eq!(*person.app.screen(), node(&names[0]));
    person.press("<esc>");
    assert_eq!(person.here(), names[0], "the list follows");
}

#[test]
fn an_answer_is_asked_for_once_and_kept_for_its_snapshot() {
    let mut person = Person::new();
    person.press("/2-84<enter><enter><esc><enter>");
    assert_eq!(person.asked, [Question::Node(full("ip-10-0-2-84"))]);
    person.press("x");
    let removal = Question::Remove(vec![full("ip-10-0-2-84")]);
    assert_eq!(person.asked.last(), Some(&removal));
    assert!(person.line("spend per month").contains('$'));
    assert!(
        person.line("rules stop this").contains("pod"),
        "what keeps it is said, too"
    );
    person.press("<esc>");
    assert!(!person.screen().contains("spend per month"));
}

#[test]
fn marked_nodes_are_asked_about_together() {
    let mut person = Person::new();
    person.press("N  x");
    let Some(Question::Remove(names)) = person.asked.iter().find(|it| matches!(it, Question::Remove(_))) else {
        panic!("{:?}", person.asked)
    };
    assert_eq!(names.len(), 2);
    assert!(person.line("what if").contains("2 nodes"));
}

#[test]
fn what_takes_long_says_so_after_a_moment_and_keys_go_on_working() {
    let mut person = Person::new();
    person.press("N");
    // Nobody answers: effects are looked at and dropped.
    let effects = person.app.handle(Event::Key(Key::Enter.into()), person.now);
    assert!(matches!(effects[..], [Effect::Ask(Question::Node(_))]));
    assert!(!person.screen().contains("computing…"), "not at once");
    assert!(person.app.wake_in(person.now).is_some_and(|left| left <= 150));
    person.now += 151;
    assert!(person.screen().contains("computing…"));
    person.press("<esc>j");
    assert_eq!(*person.app.screen(), Screen::Nodes);
}

#[test]
fn groups_have_headings_with_their_sums_and_a_pool_leads_to_its_nodes() {
    let mut person = Person::new();
    person.press("b");
    let heading = person.line("general   ");
    assert!(
        heading.contains("nodes") && heading.contains("cpu") && heading.contains("/h"),
        "{heading}"
    );
    person.press("b");
    assert!(person.line("us-east-1a   ").contains("nodes"));
    person.press("2<enter>");
    let pool = person.line("filter pool=");
    assert_eq!(*person.app.screen(), Screen::Nodes, "{pool}");
}

#[test]
fn a_screen_that_becomes_smaller_and_larger_keeps_its_place() {
    let mut person = Person::new().sized(120, 40);
    person.press("N<end>");
    let here = person.here();
    person.resize(80, 24);
    assert_eq!(person.here(), here);
    person.resize(40, 10);
    assert!(person.screen().starts_with("needs 80×24, has 40×10"));
    person.resize(120, 40);
    assert_eq!(person.here(), here);
}

#[test]
fn the_cursor_stays_on_its_node_when_others_come_and_new_ones_are_marked() {
    let mut person = Person::new();
    person.press("Njjj");
    let here = person.here();
    let first = SNAPSHOT.objects().nodes.iter().next().unwrap();
    let mut copy = first.as_ref().clone();
    copy.metadata.name = "ip-10-0-0-0".into();
    copy.spec.provider_id = Some("aws:///us-east-1a/i-new".into());
    let larger = SNAPSHOT.overlaid(|objects| objects.nodes = objects.nodes.with([Arc::new(copy)]));
    let picture = pictured(2, &Arc::new(larger), &Choices::default());
    person.give(Event::Picture(picture));
    assert_eq!(person.here(), here);
    assert!(person.line("ip-10-0-0-0 ").starts_with('+'));
    person.now += 6_000;
    assert!(person.line("ip-10-0-0-0 ").starts_with(' '), "for a while only");
}

#[test]
fn pending_pods_have_their_way_and_the_fix_can_be_copied() {
    let mut person = Person::new().sized(120, 40);
    person.press("p/image-builder<enter>");
    let screen = person.screen();
    assert!(
        screen.contains("smallest fix") || screen.contains("stops at"),
        "{screen}"
    );
    person.press("<esc>/checkout<enter>c");
    assert!(
        matches!(&person.done[..], [Effect::Copy(text)] if text.starts_with("# ")),
        "{:?}",
        person.done
    );
    assert!(person.line("copied").contains("line"));
}

#[test]
fn decisions_can_be_zoomed_moved_and_filtered() {
    let mut person = Person::new().sized(120, 40);
    person.press("t");
    let shown = |person: &mut Person| person.line("decisions, ");
    assert!(shown(&mut person).contains("last 2h: 12"));
    person.press("+");
    assert!(shown(&mut person).contains("last 1h"));
    person.press("<left>");
    assert!(shown(&mut person).contains("1h until 15m ago"));
    person.press("<right>-f");
    assert!(shown(&mut person).contains("only acted"));
    person.press("ffff/interrupted<enter>");
    assert!(shown(&mut person).contains(": 1, 1 acted"));
    person.press("<enter>");
    assert!(matches!(person.asked.last(), Some(Question::Why { object, .. }) if object.len() == 1));
}

#[test]
fn the_object_under_the_cursor_is_shown_as_yaml_or_described() {
    let object = |kind: &'static str, name: String, is_described: bool| Question::Object {
        kind,
        name,
        is_described,
    };
    let mut person = Person::new();
    person.press("/2-84<enter>y");
    assert_eq!(person.asked.last(), Some(&object("Node", full("ip-10-0-2-84"), false)));
    person.press("<esc><esc>2d");
    let Some(Question::Object {
        kind: "NodePool",
        is_described: true,
        ..
    }) = person.asked.last()
    else {
        panic!("{:?}", person.asked)
    };
    person.press("<esc>p/checkout<enter>y");
    assert!(
        matches!(person.asked.last(), Some(Question::Object { kind: "Pod", name, .. }) if name.contains("checkout"))
    );
    person.press("e");
    let Some(Question::Events { kind: "Pod", name, .. }) = person.asked.last() else {
        panic!("{:?}", person.asked)
    };
    assert!(name.contains("checkout"), "{name}");
    person.press("<esc>");
    assert_eq!(*person.app.screen(), Screen::Pending, "one step leads back from both");
}

#[test]
fn a_text_about_an_object_leads_to_its_other_forms() {
    let mut person = Person::new();
    person.press("/2-84<enter><enter><enter>y");
    let Some(Question::Object { kind: "Pod", name, .. }) = person.asked.last() else {
        panic!("{:?}", person.asked)
    };
    assert!(name.contains('/'), "the pod that `enter` asked about: {name}");
    person.press("d<esc>");
    assert!(matches!(person.app.screen(), Screen::Text { title, .. } if title.starts_with("why pod ")));
    person.press("<esc>");
    assert_eq!(*person.app.screen(), node("ip-10-0-2-84"));
}

#[test]
fn decisions_are_narrowed_to_what_was_done_to_a_reason_and_to_a_pool() {
    let mut person = Person::new().sized(120, 40);
    person.press("t");
    let said = |person: &mut Person| {
        person.press("f");
        let line = person.line("decisions, ");
        let only = line.split("; only ").nth(1).unwrap_or_default();
        only.split("  ").next().unwrap_or_default().to_owned()
    };
    let turns: Vec<String> = (0..5).map(|_| said(&mut person)).collect();
    assert_eq!(turns[..2], ["acted", "refused"]);
    assert!(!turns[2].is_empty() && turns[3].starts_with("pool "), "{turns:?}");
    assert_eq!(turns[4], "", "all again");
}

#[test]
fn a_pending_pod_is_asked_about_in_all_pools_and_with_its_fix() {
    let words = |person: &Person| match person.asked.last() {
        Some(Question::Command { words, .. }) => words.join(" "),
        other => panic!("{other:?}"),
    };
    let mut person = Person::new();
    person.press("p/checkout<enter>a");
    let all = words(&person);
    assert!(
        all.starts_with("why pod shop/checkout") && all.ends_with(" --all-pools"),
        "{all}"
    );
    person.press("<esc>f");
    assert!(
        words(&person).starts_with("whatif --set nodepool/general.spec.limits."),
        "{}",
        words(&person)
    );
}

#[test]
fn decisions_are_narrowed_to_a_node_and_exported() {
    let mut person = Person::new().sized(120, 40);
    person.press("t");
    let all = person.line("decisions, ");
    person.press("n");
    assert!(person.line("about no node").contains("this decision"));
    person.press("jjjjn");
    let one = person.line("decisions, ");
    assert!(one.contains("last 2h: 1, 1 acted"), "{one}");
    person.press("n");
    assert_eq!(person.line("decisions, "), all);
    person.press("e");
    let Some(Question::Command { words, .. }) = person.asked.last() else {
        panic!("{:?}", person.asked)
    };
    assert_eq!(words.join(" "), "decisions export --since 7200s -o csv");
}

#[test]
fn commands_that_read_are_asked_and_those_that_write_are_not() {
    let mut person = Person::new();
    person.press(":whatif --zone-down b<enter>");
    let asked = person.asked.last().cloned();
    assert!(matches!(asked, Some(Question::Command { words, .. }) if words == ["whatif", "--zone-down", "b"]));
    assert!(person.screen().contains("line 1 of whatif"));
    person.press("<pgdn>");
    assert!(!person.screen().contains("line 1 of"), "long answers scroll");
    person.press("<esc>:pause general<enter>");
    assert!(person.line("top changes nothing").contains("dovetail pause"));
    person.press(":wy<enter>");
    assert!(person.line("no command wy").contains("why?"));
    person.press(":pending<enter>");
    assert_eq!(*person.app.screen(), Screen::Pending);
    person.press(":q<enter>");
    assert_eq!(person.done, [Effect::Quit]);
}

#[test]
fn every_screen_is_a_key_away_and_q_and_ctrl_c_end() {
    let mut person = Person::new();
    let places = [
        ("2", Screen::Pools),
        ("3", Screen::Plan),
        ("p", Screen::Pending),
        ("t", Screen::Timeline),
        ("6", Screen::Cost),
        ("1", Screen::Nodes),
    ];
    for (key, screen) in places {
        person.press(key);
        assert_eq!(*person.app.screen(), screen);
    }
    person.press("<tab>");
    assert_eq!(*person.app.screen(), Screen::Pools);
    person.press("q");
    let ctrl_c = Press {
        key: Key::Char('c'),
        ctrl: true,
    };
    person.give(Event::Key(ctrl_c));
    assert_eq!(person.done, [Effect::Quit, Effect::Quit]);
}

#[test]
fn the_mouse_selects_opens_scrolls_and_sorts() {
    let mut person = Person::new().sized(120, 40);
    person.press("N");
    let names = person.rows();
    // The head takes four lines, the rule and the headings one each.
    person.give(Event::Mouse(Mouse::Click(5, 8)));
    assert_eq!(person.here(), names[2]);
    person.give(Event::Mouse(Mouse::WheelDown));
    assert_eq!(person.here(), names[5]);
    person.give(Event::Mouse(Mouse::Click(18, 5)));
    assert!(person.line("nodes 1").contains("sort cpu"));
    person.screen();
    person.give(Event::Mouse(Mouse::Click(5, 6)));
    person.now += 100;
    person.give(Event::Mouse(Mouse::Click(5, 6)));
    assert!(matches!(person.app.screen(), Screen::Node(_)));
}

#[test]
fn the_flags_of_eks_node_viewer_choose_nodes_resources_order_and_labels() {
    let mut person = Person::with(Choices {
        resources: vec!["cpu".into()],
        extra_labels: vec!["topology.kubernetes.io/zone".into(), "eks-node-viewer/node-age".into()],
        selector: Selector::read("karpenter.sh/nodepool=data").unwrap(),
        sort: Sort::read("creation").unwrap(),
        has_prices: false,
    })
    .sized(120, 40);
    let screen = person.screen();
    let (heading, rest) = screen.split_once(" NODE").unwrap();
    let columns = rest.lines().next().unwrap();
    assert!(columns.contains("ZONE") && columns.contains("NODE-AGE"), "{columns}");
    assert!(!columns.contains("MEMORY") && !columns.contains('$'), "{columns}");
    assert!(!heading.contains('$') && heading.contains("sort age"), "{heading}");
    assert!(person.rows().len() < 16 && screen.contains("us-east-1a"), "{screen}");
}
