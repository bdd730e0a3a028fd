//! Draws `top`. Given what is known and chosen, and nothing else.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Cell as Field, Clear, Paragraph, Row as Fields, Table, TableState};

use super::grid::{self, Column};
use super::keys::{Choice, HELP};
use super::model::{Model, Table as Changes, View};
use super::units::{bars, grouped, plain, short, span};
use serve::status::human;

/// Fewer rows than this, and the tables are left out for the list.
const ROWS_FOR_TABLES: u16 = 18;

/// Colours, or none (<https://no-color.org>).
#[derive(Debug, Clone, Copy)]
pub struct Palette {
    /// Headings and what is chosen.
    pub accent: Style,
    /// What is less important.
    pub faint: Style,
    /// What is wrong.
    pub alarm: Style,
}

impl Palette {
    /// With colours or without.
    pub fn new(coloured: bool) -> Self {
        if !coloured {
            return Self {
                accent: Style::new().bold(),
                faint: Style::new(),
                alarm: Style::new().reversed(),
            };
        }
        Self {
            accent: Style::new().fg(Color::Cyan).bold(),
            faint: Style::new().fg(Color::DarkGray),
            alarm: Style::new().fg(Color::Red).bold(),
        }
    }
}

/// Draws it whole. Puts the marked row among those there are; gives the
/// number of rows that a page has.
pub fn draw(frame: &mut Frame<'_>, model: &Model, choice: &mut Choice, palette: Palette) -> usize {
    let has_tables = frame.area().height >= ROWS_FOR_TABLES;
    let tables = if has_tables {
        model.tables.len() as u16 + 2
    } else {
        0
    };
    let router = model.router_line();
    let [head, at_xdp, above, tabs, list, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(u16::from(router.is_some())),
        Constraint::Length(tables),
        Constraint::Length(1),
        Constraint::Min(2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(heading(model, choice, palette), head);
    if let Some(router) = router {
        frame.render_widget(Line::raw(router), at_xdp);
    }
    if has_tables {
        draw_tables(frame, above, &model.tables, palette);
    }
    frame.render_widget(tab_line(choice, palette), tabs);
    draw_list(frame, list, model, choice, palette);
    frame.render_widget(foot_line(model, choice, palette), foot);
    if choice.shows_help {
        draw_help(frame, palette);
    }
    usize::from(list.height.saturating_sub(1)).max(1)
}

fn heading(model: &Model, choice: &Choice, palette: Palette) -> Line<'static> {
    let status = &model.sample.status;
    let mut line = vec![Span::styled("fingerpost ", palette.accent)];
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    line.push(Span::raw(format!("{} ", plain(&host))));
    if let Some(netns) = &status.netns {
        line.push(Span::raw(format!("{} ", plain(netns))));
    }
    if model.looks == 0 {
        line.push(Span::raw("looking …"));
        return Line::from(line);
    }
    let phase = format!(" {}", plain(&status.mirror.phase));
    let style = match status.mirror.phase.as_str() {
        "live" => Style::new(),
        // Rows may be missing.
        _ => palette.alarm,
    };
    line.push(Span::styled(phase, style));
    line.push(Span::raw(format!(
        "  up {}  memory {}  {} events/s",
        span(status.uptime_secs),
        human(status.resident_bytes),
        short(model.events),
    )));
    if choice.paused {
        line.push(Span::styled("  held still", palette.alarm));
    }
    Line::from(line)
}

fn draw_tables(frame: &mut Frame<'_>, area: Rect, tables: &[Changes], palette: Palette) {
    const FIXED: [Constraint; 6] = [
        Constraint::Length(11),
        Constraint::Length(11),
        Constraint::Length(10),
        Constraint::Length(8),
        Constraint::Length(9),
        Constraint::Length(8),
    ];
    let titles = [
        "TABLE",
        "ROWS",
        "MEMORY",
        "NEW/S",
        "CHANGED/S",
        "GONE/S",
        "CHANGES",
    ];
    let widths = FIXED.into_iter().chain([Constraint::Min(0)]);
    // Six columns, a blank after each.
    let room = usize::from(area.width.saturating_sub(63));
    let rows = tables.iter().map(|table| {
        let number = |text: String| Field::from(Text::from(text).right_aligned());
        Fields::new([
            Field::from(marked(table)).style(if table.lacks {
                palette.alarm
            } else {
                Style::new()
            }),
            number(grouped(table.rows)),
            number(human(table.bytes)),
            number(short(table.added)),
            number(short(table.changed)),
            number(short(table.deleted)),
            Field::from(newest(&table.past, room)).style(palette.accent),
        ])
    });
    let head = titles.iter().enumerate().map(|(at, title)| {
        let text = Text::from(*title);
        Field::from(if (1..6).contains(&at) {
            text.right_aligned()
        } else {
            text
        })
    });
    let head = Fields::new(head).style(palette.faint);
    let area = Rect {
        height: area.height.saturating_sub(1),
        ..area
    };
    frame.render_widget(Table::new(rows, widths).header(head), area);
}

/// A table's name; one that misses rows has a mark.
pub fn marked(table: &Changes) -> String {
    format!("{}{}", table.name, if table.lacks { "!" } else { "" })
}

fn newest(past: &VecDeque<f64>, room: usize) -> String {
    bars(past.iter().skip(past.len().saturating_sub(room)).copied())
}

fn tab_line(choice: &Choice, palette: Palette) -> Line<'static> {
    let mut line = Vec::new();
    for (at, view) in View::ALL.into_iter().enumerate() {
        let text = format!(" {} {} ", at + 1, view.title());
        let is_shown = at == choice.view;
        let style = if is_shown {
            palette.accent.add_modifier(Modifier::REVERSED)
        } else {
            palette.faint
        };
        line.push(Span::styled(text, style));
    }
    let filter = &choice.order().filter;
    if choice.types_filter {
        line.push(Span::styled("  filter: ", palette.accent));
        line.push(Span::raw(format!("{filter}▏")));
    } else if !filter.is_empty() {
        line.push(Span::raw(format!("  filter: {filter}")));
    }
    Line::from(line)
}

fn draw_list(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    choice: &mut Choice,
    palette: Palette,
) {
    let rows = model.rows(choice.view());
    let order = choice.order();
    let places = grid::arranged(&rows, order);
    let columns = shown_columns(choice.view().columns(), area.width);
    let height = usize::from(area.height.saturating_sub(1));
    let marked = choice.marked.min(places.len().saturating_sub(1));
    let first = marked.saturating_sub(height.saturating_sub(1));
    let fields = places
        .iter()
        .skip(first)
        .take(height)
        .filter_map(|at| rows.get(*at))
        .map(|row| {
            Fields::new(columns.iter().filter_map(|(at, column)| {
                let text = Text::from(row.get(*at)?.shown());
                Some(Field::from(aligned(text, column)))
            }))
        });
    let head = Fields::new(columns.iter().map(|(at, column)| {
        let (arrow, style) = match (*at == order.column, order.downwards) {
            (false, _) => ("", palette.faint),
            (true, true) => ("▼", palette.accent),
            (true, false) => ("▲", palette.accent),
        };
        let text = Text::from(format!("{}{arrow}", column.title));
        Field::from(aligned(text, column)).style(style)
    }));
    let widths = columns.iter().map(|(_, column)| match column.width {
        0 => Constraint::Fill(1),
        width => Constraint::Length(width),
    });
    let table = Table::new(fields, widths)
        .header(head)
        .row_highlight_style(Style::new().reversed());
    let mut state = TableState::new();
    if !places.is_empty() {
        state.select(Some(marked - first));
    }
    frame.render_stateful_widget(table, area, &mut state);
    if places.is_empty() && area.height > 1 {
        let below = Rect {
            y: area.y + 1,
            height: 1,
            ..area
        };
        frame.render_widget(Line::styled(nothing(choice, model), palette.faint), below);
    }
    choice.marked = marked;
}

fn nothing(choice: &Choice, model: &Model) -> String {
    let said = match (choice.view(), choice.order().filter.is_empty()) {
        (_, false) => "no row has this text; Esc drops the filter",
        (View::Subscribers, true) => match &model.subscribers.trouble {
            Some(trouble) => return plain(trouble),
            None => "no subscribers",
        },
        (View::Links, true) if model.looks == 0 => "looking …",
        (View::Links, true) => "no links",
        (_, true) => "nothing has changed since this screen was opened",
    };
    said.to_owned()
}

fn aligned<'a>(text: Text<'a>, column: &Column) -> Text<'a> {
    text.alignment(if column.is_number {
        Alignment::Right
    } else {
        Alignment::Left
    })
}

/// The columns that fit, by their places: from the right the ones that are
/// too much are left out. The first takes what it can get.
fn shown_columns(columns: &'static [Column], width: u16) -> Vec<(usize, &'static Column)> {
    let mut left = width;
    let fits = |(_, column): &(usize, &Column)| {
        let needs = if column.width == 0 { 15 } else { column.width };
        let has = left >= needs;
        left = left.saturating_sub(needs + 1);
        has
    };
    columns
        .iter()
        .enumerate()
        .take_while(fits_first(fits))
        .collect()
}

/// The first column is always shown, however narrow the screen.
fn fits_first<T>(mut fits: impl FnMut(&T) -> bool) -> impl FnMut(&T) -> bool {
    let mut is_first = true;
    move |item| {
        let has = fits(item);
        std::mem::take(&mut is_first) || has
    }
}

fn foot_line(model: &Model, choice: &Choice, palette: Palette) -> Line<'static> {
    if let Some(trouble) = &model.trouble {
        return Line::styled(format!("{}; trying again", plain(trouble)), palette.alarm);
    }
    if let Some(warning) = model.sample.status.warnings().first() {
        return Line::styled(format!("WARNING: {}", plain(warning)), palette.alarm);
    }
    if model.fell_behind > 0 {
        let text = format!(
            "changes came faster than they can be told, {} times: rates are too low",
            model.fell_behind
        );
        return Line::styled(text, palette.alarm);
    }
    let hint = if choice.types_filter {
        "Enter keep  Esc drop"
    } else {
        "q quit  s sort  r reverse  / filter  Tab list  Space hold  ? help"
    };
    Line::styled(hint, palette.faint)
}

fn draw_help(frame: &mut Frame<'_>, palette: Palette) {
    let area = frame.area();
    let (width, height) = (70.min(area.width), (HELP.len() as u16 + 2).min(area.height));
    let area = Rect {
        x: (area.width - width) / 2,
        y: (area.height - height) / 2,
        width,
        height,
    };
    let lines = HELP.iter().map(|(keys, what)| {
        Line::from(vec![
            Span::styled(format!(" {keys:<15}"), palette.accent),
            Span::raw(*what),
        ])
    });
    let block = Block::bordered().title(" Keys ");
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(block), area);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::model::tests::model;
    use super::*;

    fn drawn(width: u16, height: u16, model: &Model, choice: &mut Choice) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal
            .draw(|frame| {
                draw(frame, model, choice, Palette::new(true));
            })
            .unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn everything_has_its_place() {
        let model = model();
        let mut choice = Choice::default();
        let screen = drawn(100, 30, &model, &mut choice);
        for text in [
            "routes      ",
            "1,000,000",
            "1.00M",
            "1.00k events/s",
            "RX BIT/S▼",
            "eth0",
            "q quit",
        ] {
            assert!(screen.contains(text), "{text}:\n{screen}");
        }
        choice.view = 2;
        let screen = drawn(100, 30, &model, &mut choice);
        assert!(screen.contains("10.1.0.0/16"), "{screen}");
        choice.shows_help = true;
        assert!(drawn(100, 30, &model, &mut choice).contains("reverse the order"));
    }

    #[test]
    fn every_size_can_be_drawn() {
        let mut model = model();
        for _ in 0..2 {
            for (width, height) in [(1, 1), (2, 3), (10, 4), (40, 12), (80, 24), (400, 100)] {
                for shows_help in [false, true] {
                    let mut choice = Choice {
                        shows_help,
                        marked: usize::MAX,
                        ..Choice::default()
                    };
                    drawn(width, height, &model, &mut choice);
                    assert_eq!(choice.marked, 1);
                }
            }
            model.fail("no daemon".to_owned());
        }
    }

    #[test]
    fn a_table_that_misses_rows_has_a_mark() {
        let mut model = model();
        let mut choice = Choice::default();
        assert!(!drawn(80, 24, &model, &mut choice).contains("routes!"));
        model.tables[3].lacks = true;
        model.sample.status.mirror.phase = "degraded: routes miss rows".to_owned();
        let shown = drawn(80, 24, &model, &mut choice);
        assert!(shown.contains("routes!") && shown.contains("degraded: routes miss rows"));
    }

    #[test]
    fn trouble_and_emptiness_are_said() {
        let mut model = model();
        let mut choice = Choice::default();
        choice.orders[0].filter = "zzz".to_owned();
        assert!(drawn(80, 24, &model, &mut choice).contains("no row has this text"));
        model.fail("no daemon listens".to_owned());
        assert!(drawn(80, 24, &model, &mut choice).contains("no daemon listens; trying again"));
    }
}
