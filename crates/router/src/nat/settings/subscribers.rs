//! What lines say of subscribers and blocks, entered into the settings.

use nat::rules::{BlocksWord, Limit, Statement};
use nat::{Blocks, Config, QuotaKind};

/// Whether a line says something of subscribers or blocks.
pub fn is_about(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Subscribers(..)
            | Statement::Blocks(_)
            | Statement::ReservePorts(_)
            | Statement::Deterministic(_)
            | Statement::Limit(_)
            | Statement::MaxSubscribers(_)
    )
}

/// The settings of blocks: a line about them turns them on.
pub fn of(config: &mut Config) -> &mut Blocks {
    config.blocks.get_or_insert_default()
}

/// What a line says; the rest stays.
pub fn blocks(word: BlocksWord, config: &mut Config) {
    let blocks = of(config);
    blocks.size = word.size.unwrap_or(blocks.size);
    blocks.most = word.most.unwrap_or(blocks.most);
    blocks.active_secs = word.active_secs.unwrap_or(blocks.active_secs);
    blocks.hold_down_secs = word.hold_down_secs.unwrap_or(blocks.hold_down_secs);
    blocks.interim_secs = word.interim_secs.unwrap_or(blocks.interim_secs);
}

/// One limit; others stay.
pub fn limit(limit: Limit, config: &mut Config) {
    let quotas = &mut config.subscribers.quotas;
    let quota = match limit.of {
        QuotaKind::Ports => &mut quotas.ports,
        QuotaKind::Sessions => &mut quotas.sessions,
        QuotaKind::HalfOpen => &mut quotas.half_open,
        QuotaKind::NewMappings | QuotaKind::Blocks => {
            let rate = &mut quotas.new_mappings;
            let at = limit.class.map_or(0, |class| class + 1);
            if let Some(place) = rate.of.get_mut(at) {
                *place = limit.most;
            }
            rate.burst = rate.burst.max(limit.burst);
            return;
        }
    };
    match limit.class {
        None => quota.all = limit.most,
        Some(class) => {
            if let Some(place) = quota.of.get_mut(class) {
                *place = limit.most;
            }
        }
    }
}
